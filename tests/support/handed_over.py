"""Stand-ins for the objects of Crocoddyl, aligator and acados that take whole problems."""

from types import SimpleNamespace

import numpy as np

NAN = np.nan


class ActionModel:
    """The documented part of `crocoddyl.ActionModelAbstract`, version 3."""

    def __init__(self, state, nu, nr, ng, nh, ng_end, nh_end):
        assert (nr, nh, nh_end) == (1, 0, 0)
        self.state, self.nu, self.ng, self.ng_end = state, nu, ng, ng_end

    def createData(self):
        nx, nu, ng = self.state.nx, self.nu, self.ng
        sizes = {"xnext": nx, "Lx": nx, "Lu": nu, "Lxx": (nx, nx), "Lxu": (nx, nu), "g": ng}
        sizes |= {"Luu": (nu, nu), "Fx": (nx, nx), "Fu": (nx, nu), "Gx": (ng, nx), "Gu": (ng, nu)}
        return SimpleNamespace(cost=NAN, **{k: np.full(size, NAN) for k, size in sizes.items()})


FAKE_CROCODDYL = SimpleNamespace(
    ActionModelAbstract=ActionModel,
    StateVector=lambda nx: SimpleNamespace(nx=nx),
    ShootingProblem=lambda x0, running, terminal: SimpleNamespace(
        x0=x0, runningModels=running, terminalModel=terminal
    ),
)


class Cost:
    """The documented part of `aligator.CostAbstract`."""

    def __init__(self, space, nu):
        self.nx, self.nu = space.nx, nu

    def createData(self):
        nx, nu = self.nx, self.nu
        sizes = {"Lx": nx, "Lu": nu, "Lxx": (nx, nx), "Lxu": (nx, nu), "Lux": (nu, nx)}
        sizes["Luu"] = (nu, nu)
        return SimpleNamespace(value=NAN, **{k: np.full(size, NAN) for k, size in sizes.items()})


class Dynamics:
    """The documented part of `aligator.dynamics.ExplicitDynamicsModel`."""

    def __init__(self, space, nu):
        self.nx, self.nu = space.nx, nu

    def createData(self):
        nx, nu = self.nx, self.nu
        return SimpleNamespace(
            xnext=np.full(nx, NAN), Jx=np.full((nx, nx), NAN), Ju=np.full((nx, nu), NAN)
        )


class StageFunction:
    """The documented part of `aligator.StageFunction`."""

    def __init__(self, nx, nu, nr):
        self.nx, self.nu, self.nr = nx, nu, nr

    def createData(self):
        nx, nu, nr = self.nx, self.nu, self.nr
        return SimpleNamespace(
            value=np.full(nr, NAN), Jx=np.full((nr, nx), NAN), Ju=np.full((nr, nu), NAN)
        )


class StageModel:
    """The documented part of `aligator.StageModel`."""

    def __init__(self, cost, dynamics):
        self.cost, self.dynamics, self.constraints = cost, dynamics, []

    def addConstraint(self, function, box):
        self.constraints.append((function, box))


class TrajOptProblem:
    """The documented part of `aligator.TrajOptProblem`."""

    def __init__(self, x0, stages, term_cost):
        self.x0, self.stages, self.term_cost, self.ends = x0, stages, term_cost, []

    def addTerminalConstraint(self, function, box):
        self.ends.append((function, box))


FAKE_ALIGATOR = SimpleNamespace(
    CostAbstract=Cost,
    StageFunction=StageFunction,
    StageModel=StageModel,
    TrajOptProblem=TrajOptProblem,
    ControlErrorResidual=lambda nx, target: SimpleNamespace(nx=nx, target=target),
    dynamics=SimpleNamespace(ExplicitDynamicsModel=Dynamics),
    manifolds=SimpleNamespace(VectorSpace=lambda nx: SimpleNamespace(nx=nx)),
    constraints=SimpleNamespace(BoxConstraint=lambda low, high: (low, high)),
)


def acados_ocp():
    """Return the tables of an AcadosOcp."""
    tables = ("model", "cost", "constraints", "solver_options")
    return SimpleNamespace(**{name: SimpleNamespace() for name in tables})
