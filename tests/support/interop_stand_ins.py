"""Stand-ins for the objects of other libraries that take our models."""

import casadi as ca


def as_function(expression, *symbols):
    return ca.Function("f", list(symbols), [expression])


class FakeDoMpc:
    """The documented part of `do_mpc.model.Model`."""

    def __init__(self):
        self.symbols, self.right, self.done = {}, {}, False

    def set_variable(self, var_type, var_name, shape):
        assert not self.done
        self.symbols[var_type, var_name] = ca.MX.sym(var_name, *shape)
        return self.symbols[var_type, var_name]

    def set_rhs(self, var_name, expr):
        assert not self.done
        assert expr.shape == self.symbols["_x", var_name].shape
        self.right[var_name] = expr

    def setup(self):
        self.done = True

    @property
    def function(self):
        right = ca.vertcat(*(self.right[name] for name in ("q", "v")))
        return as_function(right, *self.symbols.values())


class FakeOcp:
    """The documented part of `rockit.Ocp`."""

    def __init__(self):
        self.t, self.states, self.controls, self.parameters = ca.MX.sym("t"), [], [], []
        self.der, self.values = {}, []

    def state(self, n_rows):
        self.states.append(ca.MX.sym("x", n_rows))
        return self.states[-1]

    def control(self, n_rows):
        self.controls.append(ca.MX.sym("u", n_rows))
        return self.controls[-1]

    def parameter(self, n_rows, grid):
        assert grid == "control"
        self.parameters.append(ca.MX.sym("p", n_rows))
        return self.parameters[-1]

    def set_der(self, state, der):
        assert state.shape == der.shape
        self.der[id(state)] = der

    def set_value(self, parameter, value):
        self.values.append((parameter, value))

    @property
    def function(self):
        right = ca.vertcat(*(self.der[id(state)] for state in self.states))
        return as_function(right, *self.states, *self.controls, *self.parameters, self.t)
