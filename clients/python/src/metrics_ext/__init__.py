"""Pipeline metrics for the PostgreSQL extension metrics_ext."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .aggregator import MetricsAggregator
from .collector import MetricsCollector, OperatorContext
from .config import MetricsConfig
from .models import OperatorMetrics, RunMetrics, StageMetrics
from .reporter import Reporter

if TYPE_CHECKING:
    from .writer import MetricsWriter

__all__ = [
    "MetricsAggregator",
    "MetricsCollector",
    "MetricsConfig",
    "MetricsWriter",
    "OperatorContext",
    "OperatorMetrics",
    "Reporter",
    "RunMetrics",
    "StageMetrics",
]


def __getattr__(name: str) -> Any:
    """MetricsWriter only when it is asked for, since it needs pyarrow."""
    if name == "MetricsWriter":
        from .writer import MetricsWriter

        return MetricsWriter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
