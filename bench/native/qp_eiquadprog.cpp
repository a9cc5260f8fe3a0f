// Times eiquadprog, the solver of TSID, on recorded problems
//
//     min 1/2 x'Hx + g'x   subject to   CE x + ce = 0,  CI x + ci >= 0.
//
// Arguments: problems, results, n, equalities, inequalities, problems in the file, repeats. Each
// problem is H, g, CE, ce, CI, ci, column by column. One result is seconds, status, then x.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <vector>

#include <eiquadprog/eiquadprog-fast.hpp>

using Eigen::Map;
using Eigen::MatrixXd;
using Eigen::VectorXd;

int main(int argc, char **argv) {
  if (argc != 8) return 2;
  const long n = std::atol(argv[3]), me = std::atol(argv[4]), mi = std::atol(argv[5]);
  const long count = std::atol(argv[6]), repeats = std::atol(argv[7]);
  const long size = n * n + n + me * n + me + mi * n + mi;
  std::vector<double> data(static_cast<size_t>(size * count));
  std::ifstream in(argv[1], std::ios::binary);
  in.read(reinterpret_cast<char *>(data.data()),
          static_cast<std::streamsize>(data.size() * sizeof(double)));
  if (!in) return 3;
  eiquadprog::solvers::EiquadprogFast solver;
  solver.reset(n, me, mi);
  std::vector<double> results;
  VectorXd x(n);
  for (long r = 0; r < repeats; ++r)
    for (long k = 0; k < count; ++k) {
      double *p = data.data() + k * size;
      const auto take = [&p](long rows, long cols) {
        const MatrixXd block = Map<const MatrixXd>(p, rows, cols);
        p += rows * cols;
        return block;
      };
      const MatrixXd H = take(n, n);
      const VectorXd g = take(n, 1);
      const MatrixXd CE = take(me, n);
      const VectorXd ce = take(me, 1);
      const MatrixXd CI = take(mi, n);
      const VectorXd ci = take(mi, 1);
      const auto begin = std::chrono::steady_clock::now();
      const auto status = solver.solve_quadprog(H, g, CE, ce, CI, ci, x);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      results.push_back(time.count());
      results.push_back(static_cast<double>(status));
      results.insert(results.end(), x.data(), x.data() + n);
    }
  std::ofstream(argv[2], std::ios::binary)
      .write(reinterpret_cast<const char *>(results.data()),
             static_cast<std::streamsize>(results.size() * sizeof(double)));
  return 0;
}
