"""The closed forms of linkages, a held body and particles once more, in numbers of 50 digits."""

# ruff: noqa: ARG002  # all mechanisms have one interface

from flint import arb, arb_mat

from campaign.bodies_by_hand import HeldBody, Particles
from campaign.planar_linkages import GROUND, Linkage


def zeros(rows: int, columns: int) -> arb_mat:
    """Return a matrix of zeros."""
    return arb_mat(rows, columns)


def col(values) -> arb_mat:
    """Return a column."""
    values = list(values)
    return arb_mat(len(values), 1, values)


def entries(column: arb_mat) -> list[arb]:
    """Return the entries of a column."""
    return [column[i, 0] for i in range(column.nrows())]


class ExactLinkage:
    """M, f, B, A, phi, c of a linkage; q and v are lists of `arb`."""

    def __init__(self, linkage: Linkage) -> None:
        self.linkage = linkage

    def inertia(self, q) -> arb_mat:
        n = len(self.linkage.masses)
        M = zeros(3 * n, 3 * n)
        for i in range(n):
            mass, inertia = self.linkage.masses[i], self.linkage.inertias[i]
            M[3 * i, 3 * i] = M[3 * i + 1, 3 * i + 1] = arb(float(mass))
            M[3 * i + 2, 3 * i + 2] = arb(float(inertia))
        return M

    def force(self, q, v) -> arb_mat:
        f = zeros(len(q), 1)
        for i, mass in enumerate(self.linkage.masses):
            f[3 * i + 1, 0] = -arb(float(mass)) * arb(float(self.linkage.gravity))
        return f

    def actuation(self, q) -> arb_mat:
        B = zeros(len(q), len(self.linkage.motors))
        for k, (i, j) in enumerate(self.linkage.motors):
            B[3 * i + 2, k] = arb(1)
            if j != GROUND:
                B[3 * j + 2, k] = arb(-1)
        return B

    def _arm(self, q, i, r):
        c, s = q[3 * i + 2].cos(), q[3 * i + 2].sin()
        x, y = arb(float(r[0])), arb(float(r[1]))
        return c * x - s * y, s * x + c * y

    def residual(self, q) -> arb_mat:
        rows = []
        for i, r, j, s in self.linkage.pins:
            gap = [arb(0), arb(0)]
            for body, place, sign in ((i, r, 1), (j, s, -1)):
                if body == GROUND:
                    at = (arb(float(place[0])), arb(float(place[1])))
                else:
                    x, y = self._arm(q, body, place)
                    at = (q[3 * body] + x, q[3 * body + 1] + y)
                gap = [gap[0] + sign * at[0], gap[1] + sign * at[1]]
            rows += gap
        for i, y, angle in self.linkage.slides:
            rows += [q[3 * i + 1] - arb(float(y)), q[3 * i + 2] - arb(float(angle))]
        return col(rows)

    def rows(self, q) -> arb_mat:
        pins, slides = self.linkage.pins, self.linkage.slides
        A = zeros(2 * (len(pins) + len(slides)), len(q))
        for k, (i, r, j, s) in enumerate(pins):
            for body, place, sign in ((i, r, 1), (j, s, -1)):
                if body != GROUND:
                    x, y = self._arm(q, body, place)
                    A[2 * k, 3 * body] += arb(sign)
                    A[2 * k + 1, 3 * body + 1] += arb(sign)
                    A[2 * k, 3 * body + 2] -= sign * y
                    A[2 * k + 1, 3 * body + 2] += sign * x
        for k, (i, _, _) in enumerate(slides):
            A[2 * (len(pins) + k), 3 * i + 1] = arb(1)
            A[2 * (len(pins) + k) + 1, 3 * i + 2] = arb(1)
        return A

    def bias(self, q, v) -> arb_mat:
        rows = []
        for i, r, j, s in self.linkage.pins:
            c = [arb(0), arb(0)]
            for body, place, sign in ((i, r, 1), (j, s, -1)):
                if body != GROUND:
                    x, y = self._arm(q, body, place)
                    square = v[3 * body + 2] ** 2
                    c = [c[0] - sign * square * x, c[1] - sign * square * y]
            rows += c
        return col(rows + [arb(0)] * (2 * len(self.linkage.slides)))


def forms(e) -> tuple[arb_mat, arb_mat]:
    """Return E(e), G(e) with `R = E Gᵀ`, `ω = 2 G ė`."""
    w, x, y, z = e
    E = arb_mat([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])
    G = arb_mat([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
    return E, G


class ExactHeldBody:
    """The held body in Euler parameters."""

    def __init__(self, body: HeldBody) -> None:
        self.body = body
        self.arm = col(arb(float(x)) for x in body.arm)
        self.J = zeros(3, 3)
        for i in range(3):
            self.J[i, i] = arb(float(body.inertia[i]))

    def inertia(self, q) -> arb_mat:
        _, G = forms(q[3:])
        M, block = zeros(7, 7), 4 * (G.transpose() * self.J * G)
        for i in range(3):
            M[i, i] = arb(float(self.body.mass))
        for i in range(4):
            for j in range(4):
                M[3 + i, 3 + j] = block[i, j]
        return M

    def force(self, q, v) -> arb_mat:
        _, G = forms(q[3:])
        _, dG = forms(v[3:])
        turning = -8 * (dG.transpose() * self.J * G * col(v[3:]))
        weight = -arb(float(self.body.mass)) * arb(float(self.body.gravity))
        return col([arb(0), arb(0), weight, *entries(turning)])

    def actuation(self, q) -> arb_mat:
        _, G = forms(q[3:])
        B = zeros(7, self.body.motors)
        for i in range(4):
            for k in range(self.body.motors):
                B[3 + i, k] = 2 * G[k, i]
        return B

    def residual(self, q) -> arb_mat:
        E, G = forms(q[3:])
        unit = (sum(x * x for x in q[3:]) - 1) / 2
        held = E * G.transpose() * self.arm
        return col([unit, 3 * unit, *(q[i] + held[i, 0] for i in range(3))])

    def rows(self, q) -> arb_mat:
        E, G = forms(q[3:])
        A = zeros(5, 7)
        for k in range(4):
            A[0, 3 + k], A[1, 3 + k] = q[3 + k], 3 * q[3 + k]
            dE, dG = forms([arb(int(i == k)) for i in range(4)])
            change = dE * (G.transpose() * self.arm) + E * (dG.transpose() * self.arm)
            for i in range(3):
                A[2 + i, 3 + k] = change[i, 0]
        for i in range(3):
            A[2 + i, i] = arb(1)
        return A

    def bias(self, q, v) -> arb_mat:
        dE, dG = forms(v[3:])
        rate = sum(x * x for x in v[3:])
        held = 2 * (dE * dG.transpose() * self.arm)
        return col([rate, 3 * rate, *entries(held)])


class ExactParticles:
    """The chained particles; only the rows of the rods, which imply the others."""

    def __init__(self, chain: Particles) -> None:
        self.chain = chain
        self.n = len(chain.masses)

    def inertia(self, q) -> arb_mat:
        M = zeros(2 * self.n, 2 * self.n)
        for i in range(2 * self.n):
            M[i, i] = arb(float(self.chain.masses[i // 2]))
        return M

    def force(self, q, v) -> arb_mat:
        f = zeros(2 * self.n, 1)
        for i, mass in enumerate(self.chain.masses):
            f[2 * i + 1, 0] = -arb(float(mass)) * arb(float(self.chain.gravity))
        return f

    def actuation(self, q) -> arb_mat:
        B = zeros(2 * self.n, 2)
        B[2 * self.n - 2, 0] = B[2 * self.n - 1, 1] = arb(1)
        return B

    def _spans(self, q):
        at = [arb(0), arb(0), *q]
        return [(at[2 * k + 2] - at[2 * k], at[2 * k + 3] - at[2 * k + 1]) for k in range(self.n)]

    def residual(self, q) -> arb_mat:
        rods = [arb(float(r)) for r in self.chain.rods]
        return col(x * x + y * y - r * r for (x, y), r in zip(self._spans(q), rods, strict=True))

    def rows(self, q) -> arb_mat:
        A = zeros(self.n, 2 * self.n)
        for k, span in enumerate(self._spans(q)):
            for axis in range(2):
                A[k, 2 * k + axis] = 2 * span[axis]
                if k:
                    A[k, 2 * k - 2 + axis] = -2 * span[axis]
        return A

    def bias(self, q, v) -> arb_mat:
        return col(2 * (x * x + y * y) for x, y in self._spans(v))
