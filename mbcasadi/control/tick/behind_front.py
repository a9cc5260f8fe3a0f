"""A law behind a front that gives some of its inputs, as one law: one Function, one C.

The front runs in the law's first stage, and its column is carried past the solver:

    build   (…, z = (memory of the front, z of the law)) → (rows, (carry of the law, column))
    finish  (…, (carry, column), solution) → outputs of the whole
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.qp.solver import controller_fun

Symbols = dict[str, ca.MX]


class BehindFront(ABC):
    """A law and what is in front of it."""

    @property
    @abstractmethod
    def law(self) -> Controller:
        """The law."""

    @property
    @abstractmethod
    def first(self) -> NDArray[np.float64]:
        """(n,) what z of the whole begins with, the memory of the front."""

    @property
    @abstractmethod
    def front(self) -> ca.Function:
        """(some inputs of the whole) → (column)."""

    @property
    @abstractmethod
    def input_signals(self) -> tuple[Signal, ...]:
        """Inputs of the whole, in their order."""

    @property
    @abstractmethod
    def output_signals(self) -> tuple[Signal, ...]:
        """The same of the outputs."""

    @abstractmethod
    def given(self, column: ca.MX) -> Symbols:
        """Return the inputs of the law that are not those of the whole, but for z."""

    @abstractmethod
    def joined(self, of_law: Mapping[str, ca.MX], column: ca.MX) -> Symbols:
        """Return the outputs of the whole, in their order, from those of the law."""

    def symbols(self) -> Symbols:
        """Return symbols of the inputs of the whole."""
        return {s.name: ca.MX.sym(s.name, len(s.components)) for s in self.input_signals}

    def column(self, s: Mapping[str, ca.MX]) -> ca.MX:
        """Return what the front gives."""
        return self.front(**{name: s[name] for name in self.front.name_in()})["column"]

    def of_law(self, s: Mapping[str, ca.MX], column: ca.MX) -> Symbols:
        """Return the inputs of the law, by name."""
        return {**s, **self._memory_of_law(s), **self.given(column)}

    def _memory_of_law(self, s: Mapping[str, ca.MX]) -> Symbols:
        return {"z": s["z"][self.first.size :]} if "z" in s else {}

    def function(self, name: str, stages: LeastDistanceStages | None) -> ca.Function:
        """Return the whole as one Function, with stages or of a law that is plain arithmetic."""
        if stages is not None:  # over a horizon there is one solver only, whatever its name
            return controller_fun(name, stages, "daqp")
        s = self.symbols()
        column = self.column(s)
        of_law = _call(self.law.function, self.of_law(s, column))
        return named_function(name, s, self.joined(of_law, column))

    @property
    def stages(self) -> LeastDistanceStages | None:
        """Stages of the whole around those of the law, None where it has none."""
        stages = self.law.stages
        if stages is None:
            return None
        prepare = stages.prepare
        return replace(
            stages,
            build=self._build(stages.build),
            finish=self._finish(stages),
            prepare=None if prepare is None else self._prepare(prepare),
            between=tuple(self._between(each, stages.build) for each in stages.between),
            between_rows=tuple(
                each and self._between(each, stages.build) for each in stages.between_rows
            ),
        )

    def _build(self, f: ca.Function) -> ca.Function:
        s = self.symbols()
        extra = _symbols_in(f, "prepared")
        column = self.column(s)
        found = _call(f, self.of_law(s, column) | extra)
        found["carry"] = ca.vertcat(ca.densify(found["carry"]), column)
        return named_function("build", s | extra, found)

    def _finish(self, stages: LeastDistanceStages) -> ca.Function:
        s, f = self.symbols(), stages.finish
        extra = _symbols_in(f, *(name for name in f.name_in() if name not in stages.inputs))
        carry, column = self._carry(f.numel_in("carry"))
        found = _call(f, self.of_law(s, column) | extra | {"carry": carry[0]})
        return named_function("finish", s | extra | {"carry": carry[1]}, self.joined(found, column))

    def _prepare(self, f: ca.Function) -> ca.Function:
        """Return the preparation, from the whole z where it takes z."""
        s = {name: x for name, x in self.symbols().items() if name in f.name_in()}
        return named_function("prepare", s, _call(f, s | self._memory_of_law(s)))

    def _between(self, f: ca.Function, build: ca.Function) -> ca.Function:
        """Return a Function between two problems, from the carry of the law."""
        carry, _ = self._carry(build.numel_out("carry"))
        s = _symbols_in(f, *f.name_in())
        found = _call(f, s | {"carry": carry[0]})
        return named_function(f.name(), s | {"carry": carry[1]}, found)

    def _carry(self, size: int) -> tuple[tuple[ca.MX, ca.MX], ca.MX]:
        """Return the carry of the law and of the whole, and the column."""
        whole = ca.MX.sym("carry", size + self.front.numel_out(0))
        return (whole[:size], whole), whole[size:]

    @property
    def monitor(self) -> ca.Function | None:
        """The monitor of the law as one of the whole; `u` stays."""
        f = self.law.monitor
        if f is None:
            return None
        s = self.symbols()
        extra = _symbols_in(f, *(name for name in f.name_in() if name not in s and name == "u"))
        found = _call(f, self.of_law(s, self.column(s)) | extra)
        read = {*f.name_in(), *self.front.name_in()}
        inputs = {name: x for name, x in (s | extra).items() if name in read}
        return named_function(f.name(), inputs, found)

    def controller(self, name: str, notes: Mapping[str, str]) -> Controller:
        """Return the whole as data, with further notes; it has no plan and no limits to report."""
        law, stages, emergency = self.law, self.stages, self.law.emergency
        if emergency is not None:
            emergency = replace(emergency, first=emergency.first + self.first.size)
        return replace(
            law,
            name=name,
            function=self.function(name, stages),
            inputs=self.input_signals,
            outputs=self.output_signals,
            z0=np.concatenate([self.first, law.z0]),
            stages=stages,
            notes={**law.notes, **notes},
            emergency=emergency,
            monitor=self.monitor,
            monitor_stages=None,
            prediction=None,
            limits=None,
        )


def _symbols_in(f: ca.Function, *names: str) -> Symbols:
    """Return symbols of those of these inputs that a Function has."""
    return {name: ca.MX.sym(name, f.sparsity_in(name)) for name in names if name in f.name_in()}


def _call(f: ca.Function, values: Mapping[str, ca.MX]) -> Symbols:
    """Return the outputs of a Function, in order; `values` may hold more than its inputs."""
    found = f(**{name: values[name] for name in f.name_in()})
    return {name: found[name] for name in f.name_out()}


def slices_of(sizes: Mapping[str, int], column: ca.MX) -> Symbols:
    """Return the parts of a column that begins with columns of these sizes, by name."""
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {name: column[ends[k] : ends[k + 1]] for k, name in enumerate(sizes)}


def named_function(name: str, s: Mapping[str, ca.MX], outputs: Mapping[str, ca.MX]) -> ca.Function:
    """Return a Function of these inputs and outputs."""
    return ca.Function(name, [*s.values()], [*outputs.values()], [*s], [*outputs])
