"""The records of one results file, summarised over their repeats."""

import json
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Summary:
    """All repeats of one contestant on one workload; every number is the median of the repeats."""

    workload: str
    contestant: str
    n_rounds: int
    n_threads: int
    records: tuple[dict[str, Any], ...]
    leaves: int = 0
    variant: str = ""
    protocol: str = "fit"

    @property
    def ok(self) -> bool:
        return all(record["status"] == "ok" for record in self.records)

    @property
    def status(self) -> str:
        """ "ok", or what went wrong in the first repeat where something did."""
        return next((r["status"] for r in self.records if r["status"] != "ok"), "ok")

    @property
    def extrapolated(self) -> str | None:
        return next((r["extrapolated"] for r in self.records if r.get("extrapolated")), None)

    @property
    def complete(self) -> bool:
        """Whether it was fitted to its end, in every repeat."""
        return self.ok and self.extrapolated is None

    def median(self, field: str) -> float | None:
        known = self.values(field)
        return statistics.median(known) if known else None

    def values(self, field: str) -> list[float]:
        """What the repeats say about it, as far as they do."""
        found = (record.get(field) for record in self.records)
        return [value for value in found if value is not None]

    @property
    def fit_seconds(self) -> float | None:
        return self.median("fit_seconds")

    @property
    def seconds_per_round(self) -> float | None:
        return self.median("seconds_per_round")

    @property
    def fastest_round(self) -> float | None:
        """Seconds of a round: the fastest long fit of all repeats minus the fastest short one."""
        records = [record for record in self.records if record.get("long_seconds")]
        if not records:
            return None
        short, long = (
            min(min(record[field]) for record in records)
            for field in ("short_seconds", "long_seconds")
        )
        return float((long - short) / (self.n_rounds - records[0]["short_rounds"]))

    @property
    def fastest_leaf(self) -> float | None:
        """Seconds of a round for each leaf of its tree."""
        seconds, leaves = self.fastest_round, self.median("leaves_per_round")
        return seconds / leaves if seconds and leaves else None

    @property
    def score(self) -> float | None:
        return self.median("score")

    @property
    def peak_bytes(self) -> float | None:
        return self.median("peak_bytes")

    @property
    def model_bytes(self) -> float | None:
        return self.median("model_bytes")

    @property
    def predicted_rows_per_second(self) -> float | None:
        seconds = self.median("predict_seconds")
        return self.median("n_test_rows") / seconds if seconds else None

    @property
    def spread(self) -> float | None:
        """(slowest − fastest) / median of the repeats' fit times; None for a single one."""
        times = [record["fit_seconds"] for record in self.records if record["status"] == "ok"]
        if len(times) < 2:
            return None
        return (max(times) - min(times)) / statistics.median(times)

    @property
    def machines(self) -> set[int]:
        """The numbers of the machines that made its records."""
        return {record["machine"] for record in self.records}

    @property
    def others_cores(self) -> float:
        """The most cores that other processes used during a repeat."""
        return max((record.get("others_cores") or 0.0) for record in self.records)

    @property
    def curve(self) -> list[tuple[int, float, float]]:
        """(round, seconds, score) points of the repeat of median time."""
        with_curve = [record for record in self.records if record.get("curve")]
        if not with_curve:
            return []
        with_curve.sort(key=lambda record: record["fit_seconds"])
        return [tuple(point) for point in with_curve[len(with_curve) // 2]["curve"]]

    @property
    def best_point(self) -> tuple[int, float, float] | None:
        """The first of the best points of the curve."""
        return max(self.curve, key=lambda point: point[2], default=None)

    def seconds_to(self, score: float) -> float | None:
        """The time until the curve first reaches this score; None if it never does."""
        times = []
        for record in self.records:
            reached = [seconds for _, seconds, at in record.get("curve", ()) if at >= score]
            if not reached:
                return None
            times.append(reached[0])
        return statistics.median(times) if times else None


Job = tuple[str, str, int, int]  # workload, contestant, rounds, threads
How = tuple[int, str, str]  # leaves, variant, protocol


class Run:
    """One results file."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.machines: list[dict[str, Any]] = stored["machines"]
        self.skipped: dict[str, str] = stored["skipped"]
        groups: dict[tuple[Job, How], list[dict[str, Any]]] = {}
        for record in stored["records"]:
            spec = record["spec"]
            job = (spec["workload"], spec["contestant"], spec.get("n_rounds", 0), spec["n_threads"])
            how = (
                spec.get("max_leaf_nodes", 0),
                spec.get("variant", ""),
                spec.get("protocol", "fit"),
            )
            groups.setdefault((job, how), []).append(record)
        self.summaries = [Summary(*job, tuple(group), *how) for (job, how), group in groups.items()]
        self.dates = sorted(record["when"] for record in stored["records"])
        self.libraries = list(dict.fromkeys(r["spec"]["library"] for r in stored["records"]))
        counts = Counter(summary.n_threads for summary in self.summaries)
        self.threads = counts.most_common(1)[0][0] if counts else 0  # of all but a few entries

    @classmethod
    def read(cls, file: Path) -> "Run":
        return cls(json.loads(file.read_text()))

    def workloads(self) -> list[str]:
        return list(dict.fromkeys(summary.workload for summary in self.summaries))

    def summaries_of(self, workload: str) -> list[Summary]:
        """Of any number of threads."""
        return [summary for summary in self.summaries if summary.workload == workload]

    def measured_on(self, workloads: Iterable[str]) -> list[dict[str, Any]]:
        """The machines of some workloads."""
        found = (s.machines for name in set(workloads) for s in self.summaries_of(name))
        return [self.machines[number] for number in sorted(set().union(*found))]

    def of(self, workload: str, *, threads: int | None = None) -> list[Summary]:
        threads = threads or self.threads
        found = [s for s in self.summaries if s.workload == workload and s.n_threads == threads]
        return sorted(found, key=lambda summary: summary.n_rounds)

    def base_rounds(self, workload: str) -> int:
        """The number of rounds that all contestants share; some run longer besides."""
        return min(s.n_rounds for s in self.summaries if s.workload == workload)

    def find(self, workload: str, contestant: str, *, threads: int | None = None) -> Summary | None:
        """The fit with the shared number of rounds, if it ended well."""
        for summary in self.of(workload, threads=threads):
            if summary.contestant == contestant:
                shared = summary.n_rounds == self.base_rounds(workload)
                return summary if summary.ok and shared else None
        return None

    def exact(self, workload: str, contestant: str, **how: Any) -> Summary | None:
        """The one of this protocol, variant, number of leaves or threads, if it ended well."""
        for s in self.summaries:
            alike = all(getattr(s, name) == value for name, value in how.items())
            if (s.workload, s.contestant) == (workload, contestant) and alike and s.ok:
                return s
        return None

    def longest(self, workload: str, contestant: str) -> Summary | None:
        """The fit with the most rounds, whose curve reaches furthest."""
        found = [s for s in self.of(workload) if s.contestant == contestant and s.ok]
        return found[-1] if found else None
