/* Timing of one call, caches warm and evicted; medians. Used by every program of this folder. */
#ifndef MBCASADI_TIMING_H
#define MBCASADI_TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* More than the last-level cache of a desktop or server core. */
#define EVICT_BYTES (96u * 1024u * 1024u)

typedef void (*kernel_call)(const double *q, const double *v);

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Time that this process has computed: long calls are interrupted on a machine that is shared. */
static double computed_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *samples, int count) {
  qsort(samples, (size_t)count, sizeof(double), ascending);
  return samples[count / 2];
}

static void evict(void) {
  static volatile char *block = NULL;
  size_t i;
  if (!block) block = (volatile char *)malloc(EVICT_BYTES);
  for (i = 0; i < EVICT_BYTES; i += 64) block[i] = (char)(block[i] + 1);
}

/* Reads `count` states as q then v; prints the medians in seconds. */
static void time_kernel(kernel_call call, const double *states, int count, int nq, int nv,
                        int warm_rounds, int cold_rounds) {
  int total = warm_rounds > cold_rounds ? warm_rounds : cold_rounds, i, k;
  double *samples = (double *)malloc((size_t)(total + 1) * sizeof(double));
  for (i = -2; i < warm_rounds; i++) {
    double start = seconds();
    for (k = 0; k < count; k++) call(states + k * (nq + nv), states + k * (nq + nv) + nq);
    if (i >= 0) samples[i] = (seconds() - start) / count;
  }
  printf("warm %.9g\n", median(samples, warm_rounds));
  for (i = 0; i < cold_rounds; i++) {
    const double *state = states + (i % count) * (nq + nv);
    double start;
    evict();
    start = seconds();
    call(state, state + nq);
    samples[i] = seconds() - start;
  }
  printf("evicted %.9g\n", median(samples, cold_rounds));
  free(samples);
}

static double *read_numbers(const char *path, int count) {
  double *values = (double *)malloc((size_t)count * sizeof(double));
  FILE *file = fopen(path, "r");
  int i;
  if (!file) exit(2);
  for (i = 0; i < count; i++)
    if (fscanf(file, "%lf", values + i) != 1) exit(3);
  fclose(file);
  return values;
}

#endif
