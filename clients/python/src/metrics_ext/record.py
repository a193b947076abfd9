"""Records: lines with the name of a function of metrics_ext and its arguments as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any

from .models import OperatorMetrics

if TYPE_CHECKING:
    from .collector import OperatorContext

OPERATOR = "metrics_report_operator"
START_RUN = "metrics_start_run"

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_NO_NUMBER = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def encode(document: Any) -> str:
    """JSON, whatever is in it: numbers that JSON has not are strings."""
    try:
        return _encode(document)
    except (TypeError, ValueError):
        return _encode(_plain(document))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NO_NUMBER[str(float(value))]
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(member) for member in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(value.tolist())
    return str(value)


def record(function: str, arguments: Mapping[str, Any]) -> bytes:
    return f"{function} {encode(arguments)}\n".encode()


def operator_record(row: OperatorMetrics | OperatorContext) -> bytes:
    """The record of an operator's row.

    Formatted by hand, since this is done for every row; what that cannot format, encode() does.
    """
    latencies, weights = row.samples()
    try:
        if len(latencies) == 1:
            samples = f'"latencies":[{latencies[0]:.12g}],"weights":[{weights[0]:d}]'
        else:
            samples = (
                f'"latencies":[{",".join(map(_real, latencies))}],'
                f'"weights":[{",".join(map(_whole, weights))}]'
            )
        return (
            f"{_beginning(row.run_id, row.stage_name, row.operator_name, row.worker_id)}"
            f'{row.input_records:d},"output_records":{row.output_records:d},'
            f'"total_time":{row.total_time:.12g},{samples},'
            f"{_errors(row.error_count) if row.error_count else ''}"
            f"{_custom_metrics(row.custom_metrics) if row.custom_metrics else ''}"
            f'"at":"{row.at()}"}}\n'
        ).encode()
    except (TypeError, ValueError):
        return record(
            OPERATOR,
            {
                "run_id": row.run_id,
                "stage_name": row.stage_name,
                "operator_name": row.operator_name,
                "worker_id": row.worker_id,
                "input_records": row.input_records,
                "output_records": row.output_records,
                "total_time": row.total_time,
                "error_count": row.error_count,
                "latencies": latencies,
                "weights": weights,
                "custom_metrics": row.custom_metrics,
                "at": row.at(),
            },
        )


@lru_cache(1024)
def _beginning(run_id: str, stage_name: str, operator_name: str, worker_id: str) -> str:
    return (
        f'{OPERATOR} {{"run_id":{quoted(run_id)},"stage_name":{quoted(stage_name)},'
        f'"operator_name":{quoted(operator_name)},"worker_id":{quoted(worker_id)},"input_records":'
    )


def _errors(error_count: int) -> str:
    return f'"error_count":{error_count:d},'


def _custom_metrics(custom_metrics: Mapping[str, Any]) -> str:
    return f'"custom_metrics":{encode(custom_metrics)},'


_real = "{:.12g}".format
_whole = "{:d}".format
