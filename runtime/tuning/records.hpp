// Records of tunings: kept in this process and on disk, found by what was tuned.
#pragma once

#include <optional>
#include <string>

#include "chainfold/runtime/tuning/task.hpp"

namespace chainfold::runtime {

/// A record as it stands on disk, and back. Nothing for a text that is no record, or whose plan is
/// not legal for the task any more.
std::string text_of_record(const TuningResult& result);
std::optional<TuningResult> parse_record(const std::string& text, const TuningTask& task);

/// The record under a key, from this process or the disk.
std::optional<TuningResult> find_record(const CacheKey& key, const TuningTask& task);
/// Keeps a record in this process and on disk.
void keep_record(const CacheKey& key, const TuningTask& task, TuningResult result);

/// Whether the record may stand for a measurement: it left nothing out for lack of time, or had as
/// much time as the task. For a task of all plans it must have left out none.
bool serves(const TuningResult& record, const TuningTask& task);

}  // namespace chainfold::runtime
