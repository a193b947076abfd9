#!/usr/bin/env python3
"""Read this machine's /proc once a second and print the readings as SQL.

Usage: readings.py TRIAL_ID SECONDS

Each second gives one transaction with a metrics_report() for each of the profiling groups
cpu, memory, disk and network, and for core_0, core_1 and so on.  Rates are per second, sizes in bytes.
"""

import json
import socket
import sys
import time
from datetime import datetime

SHOWN_CORES = 4
SECTOR = 512  # bytes; the unit of /proc/diskstats, whatever the disk's own is


def lines(path):
    """The lines of a file of /proc as lists of words; none if there is no such file."""
    try:
        with open(path) as file:
            return [line.replace(":", " ").split() for line in file]
    except FileNotFoundError:
        return []


def read_processors():
    """Clock ticks since boot, all and those with nothing to do: of "cpu", and of each "cpu<n>"."""
    processors = {}
    for name, *words in lines("/proc/stat"):
        if name.startswith("cpu"):
            ticks = [int(word) for word in words[:8]]
            processors[name] = {"all": sum(ticks), "idle": ticks[3] + ticks[4]}
    return processors


def read_disks():
    """Counters of each whole disk by its path; partitions and virtual devices are left out."""
    disks = {}
    for _, _, name, *words in lines("/proc/diskstats"):
        if name.startswith(("loop", "ram", "zram", "dm-", "md", "sr", "fd")):
            continue
        if any(name.startswith(disk.removeprefix("/dev/")) for disk in disks):
            continue
        count = [int(word) for word in words]
        disks["/dev/" + name] = {
            "operations": count[0] + count[4],
            "read": count[2] * SECTOR,
            "written": count[6] * SECTOR,
            "busy": count[9] / 1000,
        }
    return disks


def read_network():
    """Bytes received and sent on all interfaces together."""
    interfaces = lines("/proc/net/dev")[2:]
    return {
        "received": sum(int(words[1]) for words in interfaces),
        "sent": sum(int(words[9]) for words in interfaces),
    }


def read_counters():
    return {"processors": read_processors(), "disks": read_disks(), "network": read_network(), "time": time.monotonic()}


def metrics_between(before, after):
    """The metrics of one second, by group."""
    seconds = after["time"] - before["time"]

    def rate(read):
        return (read(after) - read(before)) / seconds

    memory = {words[0]: int(words[1]) * 1024 for words in lines("/proc/meminfo")}

    def utilisation(processor):
        then, now = before["processors"][processor], after["processors"][processor]
        ticks = now["all"] - then["all"]
        return 100 * (1 - (now["idle"] - then["idle"]) / ticks) if ticks else 0.0

    groups = {
        "cpu": {
            "cpu_util_simple": utilisation("cpu"),
            "cpu_load_1m": float(lines("/proc/loadavg")[0][0]),
        },
        "memory": {"memory_free": memory["MemAvailable"], "memory_dirty": memory["Dirty"]},
        "network": {
            "net_throughput_recv": rate(lambda counters: counters["network"]["received"]),
            "net_throughput_sent": rate(lambda counters: counters["network"]["sent"]),
        },
    }
    for number in range(SHOWN_CORES):
        if f"cpu{number}" in before["processors"] and f"cpu{number}" in after["processors"]:
            groups[f"core_{number}"] = {"core_util": utilisation(f"cpu{number}")}
    disks = before["disks"].keys() & after["disks"].keys()
    if disks:

        def disk_rate(what):
            return rate(lambda counters: sum(counters["disks"][disk][what] for disk in disks))

        groups["disk"] = {
            "disk_iops": disk_rate("operations"),
            "disk_throughput_read": disk_rate("read"),
            "disk_throughput_write": disk_rate("written"),
        }
        for disk in sorted(disks):
            busy = rate(lambda counters: counters["disks"][disk]["busy"])
            groups["disk"][disk] = {"disk_util": min(100.0, 100 * busy)}
    return groups


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def main():
    trial, seconds = int(sys.argv[1]), int(sys.argv[2])
    agent = socket.gethostname()
    before = read_counters()
    start = before["time"]
    print("SET standard_conforming_strings = on;")
    for second in range(1, seconds + 1):
        time.sleep(max(0, start + second - time.monotonic()))
        after = read_counters()
        report_time = datetime.now().astimezone().isoformat()
        print("BEGIN;")
        for group, metrics in metrics_between(before, after).items():
            document = json.dumps({agent: metrics})
            print(
                f"SELECT metrics_report({trial}, '{group}', {literal(document)}, "
                f"report_time => '{report_time}');"
            )
        print("COMMIT;", flush=True)
        before = after


main()
