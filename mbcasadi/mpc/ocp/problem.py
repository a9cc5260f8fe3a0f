"""An optimal control problem as data, in discrete time.

    min  Σ_{k<N} ½ ‖r(x_k, u_k, p_k)‖² + ½ ‖r_N(x_N, p_N)‖²
    s.t. x_{k+1} = F(x_k, u_k, p_k),   x_0 given,
         g_min <= g(x_k, u_k, p_k) <= g_max,   gN_min <= g_N(x_N, p_N) <= gN_max,
         x_min <= x_k <= x_max (k >= 1),   u_min <= u_k <= u_max.

Rows of g and g_N may be soft: a violation e costs ρ₁ e + ½ ρ₂ e² (see `constraints`). Weights are
inside the residuals, so that Gauss-Newton needs their Jacobians only. Every solver of this package
takes this one description.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.reference import Slices, merged, slice_names, slot_slices
from mbcasadi.control.tasks.task import Slot, Task
from mbcasadi.description import TuningParameter
from mbcasadi.description.parameters import NO_PARAMETERS, Parameters
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.stage_tuning import TUNING, require_tuned, tuned_column
from mbcasadi.shapes import real_array, require_name
from mbcasadi.short_text import summarised
from mbcasadi.system import System

Array = NDArray[np.float64]


DERIVATIVES = ("a", "lam", "a_q", "a_v", "a_u", "lam_q", "lam_v", "lam_u")
"""Outputs of `MotionForm.derivatives`."""

STEP = "step"
"""Slice of p: the length of the interval behind a sample, s, where intervals have given ones."""

LANDING = "landing"
"""Slice of p: one for each contact that lands at this sample, of its speed, then of its height."""


def landings(on: Array) -> Array:
    """Return (N + 1, 2 n) which of n contacts are on behind a sample and off before.

    Heights count from the second sample on: at the first one, a foot at rest is where it was.
    """
    speed = np.vstack([np.zeros(on.shape[1]), on[1:] * (1 - on[:-1])])
    return np.hstack([speed, np.vstack([np.zeros((2, on.shape[1])), speed[2:]])])


def sample_times(horizon: int, period: float, lengths: Array | None) -> Array:
    """Return (N + 1,) times of the samples, s: of equal intervals, or of lengths (N,)."""
    times: Array = period * np.arange(horizon + 1, dtype=np.float64)
    return times if lengths is None else np.concatenate([[0.0], np.cumsum(lengths)])


@dataclass(frozen=True)
class MotionForm:
    """The parts of a problem whose step is one acceleration.

    Deviations of a state are `(δq, δv, δu_last)` along tangents, of size `nv + nv (+ nu)`.

    Attributes:
        motion: (x, u, p) → (a, lam).
        derivatives: (x, u, p) → `DERIVATIVES`, by tangents.
        residual, path: (x, u, p, a, lam) → (r), (g).
        path_slopes: (x, p) → (ng, 2 nv (+ nu)) derivatives of those rows of the path that have a
            formula, others zero; None where none has.
        tangent: (x) → (N), (nx, 2 nv (+ nu)) rates of x along a deviation.
        turns: (v_next, [step]) → (Phi, Gamma) of all rotations, blocks of three rows, row by row.
        rotations: first rate of each.
        moved: (x, deviation) → (x ⊕ deviation).
        gap: (x, y) → (y ⊖ x).
        inertia: (x, p) → the inertia over a step, springs and servos in it, as a column.
        step: length of a step, s; where p has it, the nominal one of the first.
        step_row: row of p that has it; None where all have one length.
    """

    motion: ca.Function
    derivatives: ca.Function
    residual: ca.Function
    path: ca.Function
    path_slopes: ca.Function | None
    tangent: ca.Function
    turns: ca.Function
    rotations: tuple[int, ...]
    moved: ca.Function
    gap: ca.Function
    inertia: ca.Function
    step: float
    step_row: int | None = None

    def length(self, p: ca.MX) -> ca.MX | float:
        """Return the length of the step of a sample with parameters p (np,), s."""
        return self.step if self.step_row is None else p[self.step_row, 0]


@summarised
@dataclass(frozen=True)
class OptimalControlProblem:
    """The problem; sizes nx, nu, np_ are those of `dynamics`.

    Attributes:
        name: a C identifier.
        horizon: number of intervals N.
        period: length of one interval, s; of the first where they differ.
        dynamics: (x, u, p) → (x_next).
        residual: (x, u, p) → (r).
        terminal: (x, p) → (r).
        path: (x, u, p) → (g), `g` may be empty.
        path_bounds: (ng, 2).
        end: (x, p) → (g), may be empty.
        end_bounds: (ne, 2).
        x_bounds, u_bounds: (nx, 2), (nu, 2); infinite where there are none.
        slots: the slices of p at one stage, by name.
        state: (q, v) → (x), of the measurement; (q, v, u_last) → (x) where changes of u enter.
        nominal: (N + 1, np) parameters of each sample unless others are given; None for zeros.
        usual: slices of p by name at which rows have their size, where nominal ones make them zero.
        path_penalties, end_penalties: (ng, 2), (ne, 2) of ρ₁ and ρ₂, inf for hard rows; None where
            all rows are hard.
        du_bounds: (nu, 2) of the change of u, which are rows of the path too; None for none.
        given_rows, given_bounds: rows of the path, by index, that the given state must keep too,
            even in a real-time iteration, and their own bounds there, (n, 2): those of a schedule
            of contacts. None for none.
        rest: (nx,) state at rest in the initial pose; None for zeros.
        tracking: (q, p) → (target, error) of the setpoint at one sample, for reports; None where
            there is no setpoint. Its rows are named by "tracked" and "tracked_units" in `labels`.
        system: the mechanism, whose actuators the safe output knows; None where there is none.
        physical: parameters of the mechanism, which are the slice `physical` of p.
        tasks: the tasks of the cost, whose references are slices of p.
        tuning: entries of the slice `tuning` of p, the last one; none where nothing is tunable.
        tuning_order: names of entries of which the first one may not be larger than the second.
        motion: what derivatives along tangents are made of, where the step is semi-implicit.
        landing_rows: a row of the mask for each contact that lands.
        lengths: (N,) nominal values of the slice `step` of p, the length of each interval, s; None
            where all are `period`.
        labels: names of the rows of "x", "u", "path" and "end", where they have any, and "x_units".
    """

    name: str
    horizon: int
    period: float
    dynamics: ca.Function
    residual: ca.Function
    terminal: ca.Function
    path: ca.Function
    path_bounds: Array
    end: ca.Function
    end_bounds: Array
    x_bounds: Array
    u_bounds: Array
    slots: tuple[Slot, ...]
    state: ca.Function
    nominal: Array | None = None
    usual: Mapping[str, Array] = field(default_factory=dict)
    path_penalties: Array | None = None
    end_penalties: Array | None = None
    du_bounds: Array | None = None
    given_rows: tuple[int, ...] = ()
    given_bounds: Array | None = None
    rest: Array | None = None
    tracking: ca.Function | None = None
    system: System | None = None
    physical: Parameters = NO_PARAMETERS
    tasks: tuple[Task, ...] = ()
    tuning: tuple[TuningParameter, ...] = ()
    tuning_order: tuple[tuple[str, str], ...] = ()
    motion: MotionForm | None = None
    landing_rows: tuple[int, ...] = ()
    lengths: Array | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "horizon": self.horizon,
            "period": self.period,
            "nx": self.nx,
            "nu": self.nu,
            "parameters": {slot.name: slot.size for slot in self.slots},
            "path rows": len(self.path_bounds),
            "end rows": len(self.end_bounds),
        }

    @checked
    def names(self, of: str) -> tuple[str, ...]:
        """Return a name for each row of "x", "u", "path" or "end"."""
        sizes = {"x": self.nx, "u": self.nu}
        sizes |= {"path": len(self.path_bounds), "end": len(self.end_bounds)}
        require_name("rows", of, list(sizes))
        labels = self.labels.get(of, ())[: sizes[of]]
        return (*labels, *(f"{of}{i}" for i in range(len(labels), sizes[of])))

    @checked
    def parameters(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return p (N + 1, np) with these slices, nominal elsewhere.

        Args:
            values: by name, `{"setpoint.q": [0.1, 0.2]}`: one slice for all samples, (n,), or a
                schedule (N + 1, n) of them. A schedule of N samples leaves the last one nominal.
                Which rows land follows from the mask.
            slices: the same as keywords, with `_` for dots: `setpoint_q=[0.1, 0.2]`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ProblemError: a schedule that is longer or shorter than the horizon, an interval without
                length.
            ShapeError: a slice of a wrong size, or NaN.
        """
        N = self.horizon
        p = np.zeros((N + 1, self.np_)) if self.nominal is None else self.nominal.copy()
        places = slot_slices(self.slots)
        names = slice_names(places)
        for name, value in merged(values, slices).items():
            require_name("slice of the parameters", name, list(places), also=names)
            array, place = real_array(name, value), places[names[name]]
            size = place.stop - place.start
            if array.ndim == 2 and array.shape[0] not in {N, N + 1}:
                raise ProblemError(
                    f"schedule of {name} has {array.shape[0]} samples; expected {N} or {N + 1} "
                    f"for a horizon of {N} intervals"
                )
            is_schedule = array.ndim == 2 and array.shape[1] == size
            if not (is_schedule or array.shape == (size,) or (size == 1 and array.shape == ())):
                raise ShapeError(f"{name} has shape {array.shape}, expected ({size},)")
            if not np.all(np.isfinite(array)):
                raise ShapeError(f"{name} holds NaN or infinity; expected finite numbers")
            if name == TUNING:
                for column in np.atleast_2d(array):
                    require_tuned(self.tuning, self.tuning_order, column)
            p[: array.shape[0] if is_schedule else N + 1, place] = array
        if self.lengths is not None and not np.all(p[:-1, places[STEP]] > 0):
            least = p[:-1, places[STEP]].min()
            raise ProblemError(f"step = {least:g} s; expected positive lengths of the intervals")
        if LANDING in places and LANDING not in merged(values, slices):
            p[:, places[LANDING]] = landings(p[:, places["mask"]][:, list(self.landing_rows)])
        return p

    @checked
    def tuned(self, values: Mapping[str, float]) -> Array:
        """Return the slice `tuning` with these entries, defaults elsewhere.

        Raises:
            UnknownNameError: no such entry; the message lists those there are.
            ProblemError: a value out of its bounds.
        """
        return tuned_column(self.tuning, self.tuning_order, values)

    @property
    def times(self) -> Array:
        """(N + 1,) nominal times of the samples, from the first one on, s."""
        return sample_times(self.horizon, self.period, self.lengths)

    @property
    def first_path_bounds(self) -> Array:
        """(ng, 2) bounds of the path at the given state, with its own where it has any."""
        limits = self.path_bounds.copy()
        if self.given_bounds is not None:
            limits[list(self.given_rows)] = self.given_bounds
        return limits

    @property
    def rows_of_state(self) -> list[int]:
        """Rows of the path, by index, that no control reaches: the given state decides its own."""
        with_control = set(self.path.jac_sparsity(0, self.path.index_in("u")).row())
        return [i for i in range(len(self.path_bounds)) if i not in with_control]

    @property
    def nx(self) -> int:
        """Size of the state."""
        return int(self.dynamics.size1_in("x"))

    @property
    def nu(self) -> int:
        """Size of the control."""
        return int(self.dynamics.size1_in("u"))

    @property
    def has_rates(self) -> bool:
        """Whether the control of the interval before is a part of the state."""
        return int(self.state.n_in()) > 2

    @property
    def np_(self) -> int:
        """Size of the parameters of one stage."""
        return int(self.dynamics.size1_in("p"))

    @property
    def n_ref(self) -> int:
        """The same without the tuning, which is behind them and the same at all samples."""
        return self.np_ - len(self.tuning)
