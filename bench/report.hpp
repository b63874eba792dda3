// What a run of the benchmark leaves: a head about the machine and rows, as JSON and as a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/bench/cases.hpp"

namespace chainfold::bench {

/// The limits of the machine, measured by the same run.
struct Ceilings {
  double read_gbps = 0;
  double write_gbps = 0;  ///< of a copy's time, what is left after its reads
  double copy_gbps = 0;   ///< bytes read and written

  Ceilings() = default;
  /// From the times of reading `bytes` and of copying them.
  Ceilings(std::int64_t bytes, double read_ms, double copy_ms);

  /// The least milliseconds for these bytes: reads at the read rate, then writes at the write rate.
  [[nodiscard]] double least_ms(std::int64_t read, std::int64_t written) const {
    return (static_cast<double>(read) / read_gbps + static_cast<double>(written) / write_gbps) *
           1e-6;
  }
};

/// Halfway between two measurements.
Ceilings between(const Ceilings& a, const Ceilings& b);

struct Row {
  std::string op, dtype, out_dtype;
  std::int64_t n = 0;
  std::int64_t segment = 0;  ///< 0: whole
  std::string impl;          ///< "chainfold", or the peer
  std::string plan;          ///< in one line; of peers what is called, or empty
  /// Of the suite `first`: "mma", "simt" or "mma+simt"; of `reduce`: "chosen" by the rules, "tuned"
  /// or "forced" to a strategy; empty for peers.
  std::string plan_kind;
  double ms = 0;  ///< 0 where `missing` says why
  std::size_t repeats = 0;
  std::optional<double> gbps;  ///< bytes of inputs and outputs
  std::optional<double>
      ceiling_ms;               ///< the least time at the ceilings measured between its repeats
  std::optional<double> ratio;  ///< ceiling_ms / ms
  std::optional<double> max_err_u;
  std::optional<double> err_percent;     ///< of one result for all elements, by the exact one
  bool overflow = false;                 ///< a result was not finite, as published sums may be
  std::optional<double> pj_per_element;  ///< energy of the device
  /// That of the ceilings' kernels for as many bytes.
  std::optional<double> ceilings_pj_per_element;
  bool cached = false;  ///< launches find their inputs in the caches; so did the ceilings' reads
  std::int64_t offset = 0;  ///< inputs and outputs begin so many elements behind a line of memory
  std::string experiment;   ///< of a paper
  std::string data;         ///< what the input holds, where there is an experiment
  bool is_void = false;     ///< the ceilings moved while the row was measured
  std::string missing;      ///< why there is no measurement; empty: there is one
};

inline constexpr const char* kUnknownCommit = "unknown";

struct Report {
  std::string suite, target;
  std::string device, driver, cuda;
  std::string commit;         ///< kUnknownCommit where nothing tells it
  std::optional<bool> clean;  ///< unknown where there is no Git
  std::string date;
  Ceilings before, after;               ///< measured alone, ahead of the rows and behind them
  std::string peers;                    ///< versions of the peers, empty if none has one
  std::vector<std::string> strategies;  ///< all that plans may name
  std::vector<Row> rows;
};

/// A row of a case from the median time of its repeats, and the ceilings measured between them.
Row make_row(const Case& test, const std::string& impl, double ms, std::size_t repeats,
             const Ceilings& ceilings);
/// A row about something that moves no data, e.g. a compilation.
Row make_plain_row(const std::string& op, const std::string& impl, double ms, std::size_t repeats);
/// Adds a kernel's plan: its text, in one line, and which units it uses.
void set_plan(Row& row, const Kernel& kernel);

/// The commit the program was built from, or the environment's CHAINFOLD_COMMIT ("<id>" or
/// "<id>-dirty"), or what Git says where the program runs.
void describe_build(Report& report);

/// Head and rows as they stand in files.
nlohmann::ordered_json json_of_head(const Report& report);
nlohmann::ordered_json json_of_row(const std::string& suite, const Row& row);

/// Throws std::runtime_error if a file of this name cannot be written, one with `suffix` behind its
/// name where that is to be renamed to it. Leaves what is there as it is.
void check_writable(const std::filesystem::path& file, const std::string& suffix = {});
/// Throws std::runtime_error if the file cannot be written.
void write_json(const Report& report, const std::filesystem::path& file);
/// The machine, the build and the ceilings, in two lines.
std::string heading(const Report& report);
/// 2^20 rather than 1048576.
std::string size_text(std::int64_t n);
/// The rows for people.
std::string table(const Report& report);

/// The middle of some measurements. Takes at least one.
double median(std::vector<double> values);

}  // namespace chainfold::bench
