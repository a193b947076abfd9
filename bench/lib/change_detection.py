"""Perfherder's change detection, written from the description of its rules."""

import math


def describe(pushes, weights):
    """Weighted mean, variance around it and number of the values of some pushes."""
    weighted_sum = 0.0
    sum_of_weights = 0.0
    for values, weight in zip(pushes, weights):
        weighted_sum += sum(value * weight for value in values)
        sum_of_weights += weight * len(values)
    mean = weighted_sum / sum_of_weights if pushes else 0.0
    everything = [value for values in pushes for value in values]
    count = len(everything)
    variance = sum((value - mean) * (value - mean) for value in everything) / (count - 1) if count > 1 else 0.0
    return mean, variance, count


def linear(count):
    return [(count - i) / count for i in range(count)]


def students_t(prev, following):
    """t of two lists of pushes, the nearest first."""
    if not prev or not following:
        return 0.0
    mean1, variance1, count1 = describe(prev, linear(len(prev)))
    mean2, variance2, count2 = describe(following, linear(len(following)))
    delta = mean2 - mean1
    if delta == 0:
        return 0.0
    if variance1 == 0 and variance2 == 0:
        return float("inf")
    return abs(delta / math.sqrt(variance1 / count1 + variance2 / count2))


def scores(rows, min_back=12, max_back=24, fore=12, threshold=7):
    """(time, push, t, mean before, mean after, is a change) of each push of rows
    (time, push, value)."""
    by_push = {}
    for time, push, value in rows:
        by_push.setdefault(push, (time, push, []))[2].append(value)
    series = sorted(by_push.values(), key=lambda entry: entry[0])
    found = [(0.0, None, None, 0, 0)]
    quiet = 0
    for i in range(1, len(series)):
        before, count_before, j = [], 0, i - 1
        while count_before < max_back and j >= 0 and i - j <= min(max(quiet, min_back), max_back):
            before.append(series[j][2])
            count_before += len(series[j][2])
            j -= 1
        after, count_after, j = [], 0, i
        while count_after < fore and j < len(series):
            after.append(series[j][2])
            count_after += len(series[j][2])
            j += 1
        t = students_t(before, after)
        found.append((t, describe(before, [1.0] * len(before))[0], describe(after, [1.0] * len(after))[0],
                      count_before, count_after))
        quiet = 0 if t > threshold else quiet + 1
    result = []
    for i, (t, prev, new, count_before, count_after) in enumerate(found[:len(series)]):
        change = (i > 0 and count_before >= min_back and count_after >= fore and t > threshold
                  and not found[i - 1][0] > t and not (i + 1 < len(series) and found[i + 1][0] > t))
        result.append((series[i][0], series[i][1], t, prev, new, change))
    return result
