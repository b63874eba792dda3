// A file of results that grows as rows are measured, and from which an interrupted run goes on.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "chainfold/bench/report.hpp"

namespace chainfold::bench {

/// What makes two rows the same measurement: the computation, its size and data, who computed it
/// and, of ours, how the plan came about (for a forced one also its strategy, the first word of the
/// plan, and a pinned plan itself).
std::string key_of(const Row& row);

/// Whether a rate of one measurement of the ceilings is off the other's by more than `limit`, e.g.
/// 0.01: then the machine was not the same before and after, and the rows between are void.
bool apart(const Ceilings& before, const Ceilings& after, double limit);

/// Head and rows in memory and, where a path is given, on disk. Rows that another program added are
/// kept with all that they hold.
class ResultsFile {
 public:
  /// Continues the file if its head names the same suite, target, device and commit, built from a
  /// clean tree, or `resume_dirty` says that the changes, or commits that nobody knows, are the
  /// same. Otherwise the file is moved aside, and a new one begins with `head`. Throws
  /// std::runtime_error for a file that is no results file.
  ResultsFile(std::optional<std::filesystem::path> path, const Report& head, bool resume_dirty);
  ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  /// Throws std::runtime_error if save() will not be able to write a file of this name.
  static void check_writable(const std::filesystem::path& path);

  /// What became of a file that was there, in a sentence; empty if there was none.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// Whether a row with this key was measured and is not void.
  [[nodiscard]] bool has(const std::string& key) const;
  /// Whether it was measured with its energy, too.
  [[nodiscard]] bool has_energy(const std::string& key) const;
  /// Its milliseconds, where has(key).
  [[nodiscard]] double milliseconds(const std::string& key) const;
  [[nodiscard]] std::size_t rows() const;
  /// Adds a row, or replaces the one with its key.
  void put(const Row& row);
  /// The ceilings behind everything measured so far.
  void set_after(const Ceilings& ceilings);
  /// Writes a temporary file and renames it, so that the file is complete at any time. Throws
  /// std::runtime_error if that fails.
  void save() const;

 private:
  struct Content;
  std::optional<std::filesystem::path> path_;
  std::string note_;
  std::unique_ptr<Content> content_;
};

}  // namespace chainfold::bench
