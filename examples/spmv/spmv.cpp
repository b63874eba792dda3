// A sparse matrix times a vector, y = A x: the rows of a matrix in CSR form are segments that
// offsets tell. Reads Matrix Market files, as scipy.io.mmwrite writes them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

namespace {

/// Row i has the entries [row_ptr[i], row_ptr[i + 1]).
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int64_t> column{};
  std::vector<double> value{};
};

struct Entry {
  std::int64_t row, column;
  double value;
};

/// Entries in any order; those of a row keep theirs.
Matrix to_csr(std::int64_t rows, std::int64_t columns, const std::vector<Entry>& entries) {
  Matrix a{.rows = rows, .columns = columns};
  a.row_ptr.assign(static_cast<std::size_t>(rows) + 1, 0);
  for (const Entry& entry : entries) ++a.row_ptr[static_cast<std::size_t>(entry.row) + 1];
  for (std::size_t i = 0; i + 1 < a.row_ptr.size(); ++i) a.row_ptr[i + 1] += a.row_ptr[i];
  std::vector<std::int64_t> next = a.row_ptr;
  a.column.resize(entries.size());
  a.value.resize(entries.size());
  for (const Entry& entry : entries) {
    const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(entry.row)]++);
    a.column[place] = entry.column;
    a.value[place] = entry.value;
  }
  return a;
}

/// A matrix of the Matrix Market's coordinate format, real, integer or pattern, general or
/// symmetric. Throws std::runtime_error that names the line.
Matrix read_matrix(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be read", path));
  std::string line;
  std::int64_t number = 0;
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("{}, line {}: {}", path, number, why));
  };
  const auto next_line = [&] {
    while (std::getline(file, line)) {
      ++number;
      if (number == 1 || (!line.empty() && line[0] != '%')) return true;
    }
    return false;
  };
  std::string banner, object, format, field, symmetry;
  if (next_line()) std::istringstream(line) >> banner >> object >> format >> field >> symmetry;
  if (banner != "%%MatrixMarket" || object != "matrix" || format != "coordinate")
    fail("no \"%%MatrixMarket matrix coordinate\" file");
  if (field != "real" && field != "integer" && field != "pattern")
    fail("entries are " + field + "; real, integer or pattern can be read");
  if (symmetry != "general" && symmetry != "symmetric")
    fail("the matrix is " + symmetry + "; general or symmetric can be read");
  std::int64_t rows = -1, columns = -1, count = -1;
  if (!next_line() || !(std::istringstream(line) >> rows >> columns >> count) || rows < 0 ||
      columns < 0 || count < 0)
    fail("rows, columns and entries are missing");
  std::vector<Entry> entries;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!next_line()) fail(fmt::format("{} of {} entries are there", i, count));
    std::istringstream words(line);
    Entry entry{.row = 0, .column = 0, .value = 1};
    words >> entry.row >> entry.column;
    if (field != "pattern") words >> entry.value;
    if (!words) fail("an entry is \"ROW COLUMN VALUE\"");
    if (entry.row < 1 || entry.row > rows || entry.column < 1 || entry.column > columns)
      fail(fmt::format("entry ({}, {}) lies outside of {} x {}", entry.row, entry.column, rows,
                       columns));
    --entry.row;
    --entry.column;
    entries.push_back(entry);
    if (symmetry == "symmetric" && entry.row != entry.column)
      entries.push_back({entry.column, entry.row, entry.value});
  }
  return to_csr(rows, columns, entries);
}

std::vector<double> read_vector(const std::string& path, std::int64_t count) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be read", path));
  std::vector<double> x;
  for (double value = 0; file >> value;) x.push_back(value);
  if (static_cast<std::int64_t>(x.size()) != count)
    throw std::runtime_error(
        fmt::format("{} has {} numbers, the matrix {} columns", path, x.size(), count));
  return x;
}

/// Rows of very different lengths: some are empty, and one in a thousand is long.
Matrix random_matrix(std::int64_t rows) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> value(-1, 1);
  std::vector<Entry> entries;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto length = static_cast<std::int64_t>(random() % 1000 == 0 ? 2000 : random() % 17);
    for (std::int64_t i = 0; i < length; ++i)
      entries.push_back({row,
                         static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows)),
                         value(random)});
  }
  return to_csr(rows, rows, entries);
}

/// Rows whose results are further off a plain loop's than its own rounding explains.
std::int64_t wrong_rows(const Matrix& a, const std::vector<double>& x,
                        const std::vector<double>& y) {
  std::int64_t wrong = 0;
  for (std::size_t row = 0; row < y.size(); ++row) {
    const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
    double sum = 0, magnitude = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double term = a.value[at] * x[static_cast<std::size_t>(a.column[at])];
      sum += term;
      magnitude += std::fabs(term);
    }
    const double allowed = static_cast<double>(end - begin + 4) * 0x1p-53 * magnitude;
    if (!(std::fabs(y[row] - sum) <= allowed)) ++wrong;
  }
  return wrong;
}

int run(const Matrix& a, const std::vector<double>& x, const std::string& out, bool explain) {
  // What each entry is multiplied with.
  std::vector<double> x_of_entry;
  x_of_entry.reserve(a.column.size());
  for (const std::int64_t column : a.column)
    x_of_entry.push_back(x[static_cast<std::size_t>(column)]);

  auto value = cf::input<double>("value"), of_vector = cf::input<double>("x");
  const auto kernel =
      cf::compile(cf::over(cf::offsets("row_ptr"), cf::sum(value * of_vector), cf::count()));
  if (explain) fmt::print("{}\n", kernel.explain());
  const auto [y, entries] =
      kernel.run({{"value", a.value}, {"x", x_of_entry}, {"row_ptr", a.row_ptr}});
  const auto empty = std::count(entries.begin(), entries.end(), 0);
  fmt::print("{} x {}, {} entries, {} empty rows, on {}\n", a.rows, a.columns, a.value.size(),
             empty, kernel.device_name());
  if (!out.empty()) {
    std::ofstream file(out);
    for (const double each : y) file << fmt::format("{:.17g}\n", each);
    if (!file.flush()) throw std::runtime_error(fmt::format("{} cannot be written", out));
  }
  const std::int64_t wrong = wrong_rows(a, x, y);
  fmt::print("{}\n", wrong == 0 ? "equal to a plain loop, up to its rounding"
                                : fmt::format("WRONG: {} rows differ from a plain loop", wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string matrix, vector, out;
  std::int64_t rows = 100'000;
  bool explain = false;
  CLI::App app("A sparse matrix times a vector: rows are segments that offsets tell.");
  auto* const file = app.add_option("--matrix", matrix, "a Matrix Market file; else a random one");
  app.add_option("--vector", vector, "a file with a number for each column; else all are 1")
      ->needs(file);
  app.add_option("--out", out, "write the result to this file, a number a line");
  app.add_option("--rows", rows, "rows and columns of a random matrix")
      ->check(CLI::PositiveNumber)
      ->excludes(file)
      ->capture_default_str();
  app.add_flag("--explain", explain, "also print expression, graph, plan and kernel source");
  CLI11_PARSE(app, argc, argv);
  try {
    const Matrix a = matrix.empty() ? random_matrix(rows) : read_matrix(matrix);
    const std::vector<double> x =
        vector.empty() ? std::vector<double>(static_cast<std::size_t>(a.columns), 1.0)
                       : read_vector(vector, a.columns);
    return run(a, x, out, explain);
  } catch (const std::exception& error) {
    fmt::print(stderr, "spmv: error: {}\n", error.what());
    return 1;
  }
}
