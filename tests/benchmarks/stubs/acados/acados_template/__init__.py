"""A stub of acados: each solution is the guess; real-time iterations fail."""

from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np

acados_ocp_solver = SimpleNamespace(generate_c_code_discrete_dynamics=None)


def AcadosModel():  # acados' name
    """Return a model."""
    return SimpleNamespace()


def AcadosOcp():
    """Return a problem."""
    parts = ("cost", "constraints", "solver_options", "dims")
    return SimpleNamespace(**{name: SimpleNamespace() for name in parts})


class AcadosOcpSolver:
    """One problem."""

    def __init__(self, ocp, json_file):
        model = ocp.model
        acados_ocp_solver.generate_c_code_discrete_dynamics(model, {"code_export_directory": "c"})
        assert sorted(path.name for path in Path("c", f"{model.name}_model").iterdir())
        assert json_file
        self.F = ca.Function("F", [model.x, model.u, model.p], [model.disc_dyn_expr])
        assert ocp.cost.W.shape == (model.cost_y_expr.numel(),) * 2
        assert np.isfinite(ocp.constraints.lbu).all()
        assert ocp.dims.N > 1
        self.fails = "rti" in model.name
        self.values = {}

    def reset(self):
        self.values = {}

    def set(self, k, name, value):
        self.values[k, name] = value

    def solve(self):
        assert np.isfinite(np.array(self.F(self.values[0, "x"], self.values[0, "u"], 0))).all()
        return 4 if self.fails else 0

    def get_stats(self, name):
        assert name == "time_tot"
        return 1e-3

    def get(self, k, name):
        return self.values[k, name]
