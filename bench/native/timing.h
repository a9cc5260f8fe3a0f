/* Timing of one call, caches warm and swept. Used by every program of this folder. */
#ifndef MBCASADI_TIMING_H
#define MBCASADI_TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* More than the second-level cache of a core, and more than the last-level one. */
#define L2_BYTES (4u * 1024u * 1024u)
#define EVICT_BYTES (96u * 1024u * 1024u)
#define L2_ROUNDS 10 /* for each round of the last level: its sweep takes a small part of the time */

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

static void sweep(size_t bytes) {
  static volatile char *block = NULL;
  size_t i;
  if (!block) block = (volatile char *)malloc(EVICT_BYTES);
  for (i = 0; i < bytes; i += 64) block[i] = (char)(block[i] + 1);
}

/* Returns the median time of one call after so many bytes of other memory. */
static double swept_time(kernel_call call, const double *states, int count, int nq, int nv,
                         size_t bytes, int rounds) {
  double *samples = (double *)malloc((size_t)(rounds + 1) * sizeof(double)), time;
  int i;
  for (i = 0; i < rounds; i++) {
    const double *state = states + (i % count) * (nq + nv);
    double start;
    sweep(bytes);
    start = seconds();
    call(state, state + nq);
    samples[i] = seconds() - start;
  }
  time = median(samples, rounds);
  free(samples);
  return time;
}

/* Reads `count` states as q then v; prints the times of a call in seconds: caches warm, as the
   median and the least of the rounds; the second level swept; the last level swept. */
static void time_kernel(kernel_call call, const double *states, int count, int nq, int nv,
                        int warm_rounds, int cold_rounds) {
  double *samples = (double *)malloc((size_t)(warm_rounds + 1) * sizeof(double));
  int i, k;
  for (i = -2; i < warm_rounds; i++) {
    double start = seconds();
    for (k = 0; k < count; k++) call(states + k * (nq + nv), states + k * (nq + nv) + nq);
    if (i >= 0) samples[i] = (seconds() - start) / count;
  }
  printf("warm %.9g\n", median(samples, warm_rounds));
  printf("best %.9g\n", samples[0]);
  free(samples);
  printf("l2_swept %.9g\n",
         swept_time(call, states, count, nq, nv, L2_BYTES, L2_ROUNDS * cold_rounds));
  printf("evicted %.9g\n", swept_time(call, states, count, nq, nv, EVICT_BYTES, cold_rounds));
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
