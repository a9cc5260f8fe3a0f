/* Judges answers of a least-distance problem in extended precision.
 *
 *     min 1/2 x'x   subject to   lower <= A x <= upper
 *
 * An optimum by the conditions of Karush, Kuhn and Tucker, an infeasibility by Farkas' lemma. */
#include <float.h>
#include <math.h>

#if LDBL_MANT_DIG >= 64
typedef long double wide;
#else
typedef __float128 wide;
#endif

#define NONE 1e29 /* a bound of this size is none */

static wide larger(wide a, wide b) { return a >= b ? a : b; }

static wide root(wide a) {
  wide r = sqrt((double)a);
  int i;
  for (i = 0; i < 2 && r > 0; ++i) r = (r + a / r) / 2;
  return r;
}

/* Distance of a row from x = 0, in units of its length. */
static wide scale_of(const double *A, const double *low, const double *high, long m, long n) {
  wide far = 0;
  long i, j;
  for (i = 0; i < m; ++i) {
    wide length2 = 0, distance = larger(low[i], -(wide)high[i]);
    for (j = 0; j < n; ++j) length2 += (wide)A[i * n + j] * A[i * n + j];
    if (length2 > 1e-28L && distance > 0) far = larger(far, distance / root(length2));
  }
  return far >= 1 || (far > 1e-100L && far < 1e-3L) ? far : 1;
}

/* Four numbers of each problem that are zero at an optimum: violation, distance of active rows from
 * their bounds, both for rows of unit length over the scale; x + A'lam over its terms; duality gap
 * over |x|^2 and scale^2. */
void optimum(long count, long m, long n, const double *A, const double *low, const double *high,
             const double *x, const double *lam, double *verdict) {
  long k, i, j;
  for (k = 0; k < count; ++k, A += m * n, low += m, high += m, x += n, lam += m, verdict += 4) {
    wide size = 0, violation = 0, apart = 0, off = 0, terms = 0, gap = 0, x2 = 0;
    for (j = 0; j < n; ++j) x2 += (wide)x[j] * x[j];
    size = larger(scale_of(A, low, high, m, n), root(x2));
    for (i = 0; i < m; ++i) {
      const double *a = A + i * n;
      wide length2 = 0, value = 0, length;
      for (j = 0; j < n; ++j) {
        length2 += (wide)a[j] * a[j];
        value += (wide)a[j] * x[j];
      }
      length = root(length2);
      if (!(length > 1e-14L)) length = 1;
      if (low[i] > -NONE) violation = larger(violation, (low[i] - value) / length);
      if (high[i] < NONE) violation = larger(violation, (value - high[i]) / length);
      if (lam[i] != 0) {
        const double bound = lam[i] > 0 ? high[i] : low[i];
        const wide miss = (value - bound) / length;
        apart = larger(apart, miss < 0 ? -miss : miss);
        terms += fabs(lam[i]) * length;
        gap += (wide)lam[i] * bound;
      }
    }
    for (j = 0; j < n; ++j) {
      wide sum = x[j];
      for (i = 0; i < m; ++i) sum += (wide)A[i * n + j] * lam[i];
      off += sum * sum;
    }
    gap += x2;
    verdict[0] = (double)(violation / size);
    verdict[1] = (double)(apart / size);
    verdict[2] = (double)(root(off) / (size + terms));
    verdict[3] = (double)((gap < 0 ? -gap : gap) / (size * (size + terms)));
  }
}

/* 1 for each problem where r proves that no point within `radius` of the scale is feasible, or one
 * row alone shows that there is none. */
void infeasible(long count, long m, long n, const double *A, const double *low, const double *high,
                const double *ray, double radius, int *verdict) {
  long k, i, j;
  for (k = 0; k < count; ++k, A += m * n, low += m, high += m, ray += m) {
    wide sum = 0, slope = 0, longest = 0;
    int alone = 0, sound = 1;
    for (i = 0; i < m; ++i) {
      wide length2 = 0;
      for (j = 0; j < n; ++j) length2 += (wide)A[i * n + j] * A[i * n + j];
      longest = larger(longest, root(length2));
    }
    for (i = 0; i < m; ++i) {
      wide length2 = 0, length;
      for (j = 0; j < n; ++j) length2 += (wide)A[i * n + j] * A[i * n + j];
      length = root(length2);
      alone |= low[i] >= 1e30 || high[i] <= -1e30;
      alone |= (wide)low[i] - high[i] > 1e-11L * length;
      if (length <= 1e-14L * longest) alone |= low[i] > 1e-9 || high[i] < -1e-9;
      if (ray[i] != 0) {
        const double bound = ray[i] > 0 ? high[i] : low[i];
        if (!(fabs(bound) < NONE)) sound = 0;
        sum += (wide)ray[i] * bound;
      }
    }
    for (j = 0; j < n; ++j) {
      wide entry = 0;
      for (i = 0; i < m; ++i) entry += (wide)A[i * n + j] * ray[i];
      slope += entry * entry;
    }
    verdict[k] = alone || (sound && sum + radius * scale_of(A, low, high, m, n) * root(slope) < 0);
  }
}
