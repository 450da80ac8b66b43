"""Files of results: the machines, what was skipped, the records; saved at every change.

Times are compared within a unit alone: a set of the contest, shapes that differ in their number of
outputs, the suite of the engine. A unit is measured on one machine; different units may be measured
on different ones.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.machine import place
from benchmarks.one_build import replace
from benchmarks.progress import say
from benchmarks.suites import Entry

Spec = dict[str, Any]
Record = dict[str, Any]
_OUTPUTS = re.compile(r"(?<=\d)x\d+$")  # the last part of a shape


class Refused(Exception):
    """What cannot be measured; the message is a sentence for whoever asked for it."""


class Results:
    """The file of one suite."""

    def __init__(self, file: Path, *, fresh: bool = False, keep_outdated: bool = False) -> None:
        stored = json.loads(file.read_text()) if file.is_file() and not fresh else {}
        self.file = file
        self.machines: list[dict[str, Any]] = stored.get("machines", [])
        self.here = self._number(machine.describe())
        self.skipped: dict[str, str] = stored.get("skipped", {})
        self.records: list[Record] = stored.get("records", [])
        self.keep_outdated = keep_outdated

    def _number(self, described: dict[str, Any]) -> int:
        """The number of this machine, which is added if it is a new one."""
        places = [place(facts) for facts in self.machines]
        if place(described) not in places:
            self.machines.append(described)
            return len(self.machines) - 1
        number = places.index(place(described))
        self.machines[number] = described
        return number

    def begin(self, name: str, planned: Sequence[Spec], *, mixed: bool = False) -> None:
        """Drop what is not to be compared with the records of a unit that are made now.

        That is what other versions and builds made, and, unless it may be ``mixed``, what another
        machine made.

        Raises
        ------
        Refused
            When the planned records would not replace all that another machine made.
        """
        of_unit = [record for record in self.records if unit_of(record["spec"]) == name]
        old = [each for each in of_unit if not self.keep_outdated and outdated(each)]
        elsewhere = [
            record
            for record in of_unit
            # A contestant from a file is not planned, and its times are marked.
            if record["machine"] != self.here
            and record not in old
            and "source" not in record["spec"]
        ]
        jobs = {job(spec) for spec in planned}
        if mixed:
            elsewhere = []
        elif any(job(record["spec"]) not in jobs for record in elsewhere):
            raise Refused(
                f"A part of {name} was measured on another machine, and times are compared on one "
                "machine alone: measure all contestants and repeats of it here."
            )
        for what, dropped in (
            ("of other versions or builds", old),
            ("made on another machine", elsewhere),
        ):
            if dropped:
                say(f"{len(dropped)} records of {name}, {what}, are made anew")
        self.records = [record for record in self.records if record not in old + elsewhere]

    def forget(self, plan: Sequence[Entry]) -> None:
        """Drop the records of these entries."""
        names = {(entry.workload, entry.contestant) for entry in plan}
        specs = ((record, record["spec"]) for record in self.records)
        self.records = [
            record for record, s in specs if (s["workload"], s["contestant"]) not in names
        ]

    def find(self, spec: Spec) -> Record | None:
        """The record that serves this specification."""
        return next((record for record in self.records if serves(record, spec)), None)

    def failure(self, spec: Spec) -> Record | None:
        """The record of this fit if it failed, within whatever limit."""
        failed = (record for record in self.records if record["status"] == "failed")
        same = {**spec, "limit": None}
        return next((each for each in failed if {**each["spec"], "limit": None} == same), None)

    def add(self, record: Record) -> None:
        """Put a record in the place of the one of the same job, if there is one."""
        spec = record["spec"]
        others = [other for other in self.records if job(other["spec"]) != job(spec)]
        self.records = [*others, {**record, "machine": self.here}]
        self.skipped.pop(title_of_skipped(spec["workload"], spec["contestant"]), None)
        self.save()

    def skip(self, entry: Entry, reason: str) -> None:
        name = title_of_skipped(entry.workload, entry.contestant)
        if self.skipped.get(name) != reason:
            self.skipped[name] = reason
            self.save()

    def save(self) -> None:
        """Write the file; machines that measured nothing that is left are not in it."""
        used = sorted({self.here, *(record["machine"] for record in self.records)})
        numbers = {old: new for new, old in enumerate(used)}
        self.machines = [self.machines[old] for old in used]
        self.here = numbers[self.here]
        self.records = [{**each, "machine": numbers[each["machine"]]} for each in self.records]
        records = sorted(
            self.records, key=lambda record: [str(part) for part in job(record["spec"])]
        )
        write(self.file, {"machines": self.machines, "skipped": self.skipped}, records)


def write(file: Path, head: dict[str, Any], records: Sequence[Record]) -> None:
    """Write a file of results, a line for each record, at once or not at all."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    text = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    replace(file, f'{text},\n "records": [\n{lines}\n]}}\n')


def outdated(record: Record) -> bool:
    """Whether its library is installed here in another version, or was built anew."""
    made_with = record["spec"]["library"]
    return machine.library(made_with.split()[0]) not in (None, made_with)


def title_of_skipped(workload: str, contestant: str) -> str:
    return f"{workload} · {contestant}"


def unit(workload: str, protocol: str) -> str:
    """What a workload is measured together with."""
    if protocol in ("rounds", "prediction"):
        return "engine"
    return workload if protocol == "contest" else _OUTPUTS.sub("", workload)


def unit_of(spec: Spec) -> str:
    return unit(spec["workload"], spec.get("protocol", "fit"))


def job(spec: Spec) -> tuple[Any, ...]:
    """What a record is a record of, whatever the versions and the limit."""
    keys = ("workload", "contestant", "n_rounds", "n_threads", "repeat")
    return tuple(spec.get(key) for key in (*keys, "max_leaf_nodes", "protocol", "variant"))


def serves(record: Record, spec: Spec) -> bool:
    """Whether this record is what a run by this specification would have made.

    The limit matters only to a fit that it stopped.
    """
    of_record, wanted = dict(record["spec"]), dict(spec)
    recorded_limit, wanted_limit = of_record.pop("limit"), wanted.pop("limit")
    if of_record != wanted or record["status"] == "failed":
        return False
    stopped = record.get("extrapolated") or record.get("capped")
    whole = record["status"] == "ok" and not stopped
    return whole or recorded_limit >= wanted_limit
