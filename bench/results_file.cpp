#include "chainfold/bench/results_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace chainfold::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& row, const char* field) {
  const auto at = row.find(field);
  if (at == row.end() || at->is_null()) return {};
  return at->is_string() ? at->get<std::string>() : at->dump();
}

std::string key_of_json(const Json& row) {
  std::string key;
  for (const char* field : {"op", "dtype", "out_dtype", "n", "segment", "impl", "plan_kind"})
    key += text_of(row, field) + '|';
  const std::string kind = text_of(row, "plan_kind"), plan = text_of(row, "plan");
  if (kind == "forced") key += plan.substr(0, plan.find(' '));
  if (kind == "pinned") key += plan;
  for (const char* field : {"cached", "offset", "experiment", "data"}) {
    const std::string text = text_of(row, field);
    if (!text.empty()) key += '|' + text;
  }
  return key;
}

bool measured(const Json& row) {
  return row.contains("ms") && row["ms"].is_number() && !row.value("void", false);
}

/// A file is written under its name and this, and then renamed.
std::string temporary_suffix() { return fmt::format(".{}.tmp", ::getpid()); }

/// Why the rows under this head may be of another measurement; empty if they are not.
std::string difference(const Json& old, const Json& now, bool resume_dirty) {
  for (const char* field : {"suite", "target", "device", "commit"}) {
    if (text_of(old, field) != text_of(now, field))
      return fmt::format("its {} is {}", field, text_of(old, field));
  }
  if (resume_dirty) return "";
  if (text_of(now, "commit") == kUnknownCommit)
    return "its commit is unknown, and so is this program's: set CHAINFOLD_COMMIT to the commit, "
           "or give --resume-dirty if it is the same";
  const bool clean = text_of(old, "clean") == "true" && text_of(now, "clean") == "true";
  return clean ? "" : "a tree with changes was measured";
}

std::filesystem::path free_name_beside(const std::filesystem::path& path) {
  for (int i = 1;; ++i) {
    std::filesystem::path name = path;
    name.replace_extension(fmt::format("{}{}", i, path.extension().string()));
    if (!std::filesystem::exists(name)) return name;
  }
}

}  // namespace

std::string key_of(const Row& row) { return key_of_json(json_of_row("", row)); }

bool apart(const Ceilings& before, const Ceilings& after, double limit) {
  const auto differ = [&](double a, double b) {
    return !(std::fabs(a - b) <= limit * std::min(std::fabs(a), std::fabs(b)));
  };
  return differ(before.read_gbps, after.read_gbps) || differ(before.copy_gbps, after.copy_gbps);
}

struct ResultsFile::Content {
  Json head, rows = Json::array();

  Json* find(const std::string& key) {
    for (Json& row : rows)
      if (key_of_json(row) == key) return &row;
    return nullptr;
  }
};

ResultsFile::ResultsFile(std::optional<std::filesystem::path> path, const Report& head,
                         bool resume_dirty)
    : path_(std::move(path)), content_(std::make_unique<Content>()) {
  content_->head = json_of_head(head);
  if (!path_ || !std::filesystem::exists(*path_)) return;
  Json old;
  try {
    std::ifstream stream(*path_);
    stream >> old;
  } catch (const Json::exception&) {
    old = Json();
  }
  if (!old.is_object() || !old.contains("head") || !old["head"].is_object() ||
      !old.contains("rows") || !old["rows"].is_array()) {
    throw std::runtime_error(path_->string() + " is no file of results; name another one");
  }
  const std::string reason = difference(old["head"], content_->head, resume_dirty);
  if (reason.empty()) {
    content_->head = old["head"];
    content_->rows = old["rows"];
    note_ = fmt::format("{} goes on with {} rows", path_->string(), content_->rows.size());
    return;
  }
  const std::filesystem::path aside = free_name_beside(*path_);
  std::filesystem::rename(*path_, aside);
  note_ = fmt::format("{} may be another measurement ({}); it is now {}", path_->string(), reason,
                      aside.string());
}

void ResultsFile::check_writable(const std::filesystem::path& path) {
  bench::check_writable(path, temporary_suffix());
}

ResultsFile::~ResultsFile() = default;

bool ResultsFile::has(const std::string& key) const {
  const Json* row = content_->find(key);
  return row != nullptr && measured(*row);
}

bool ResultsFile::has_energy(const std::string& key) const {
  const Json* row = content_->find(key);
  return row != nullptr && measured(*row) && !text_of(*row, "pj_per_element").empty();
}

double ResultsFile::milliseconds(const std::string& key) const {
  return content_->find(key)->at("ms").get<double>();
}

std::size_t ResultsFile::rows() const { return content_->rows.size(); }

void ResultsFile::put(const Row& row) {
  Json json = json_of_row(text_of(content_->head, "suite"), row);
  if (Json* old = content_->find(key_of_json(json))) {
    *old = std::move(json);
  } else {
    content_->rows.push_back(std::move(json));
  }
}

void ResultsFile::set_after(const Ceilings& ceilings) {
  content_->head["after"] = {{"read_gbps", ceilings.read_gbps},
                             {"write_gbps", ceilings.write_gbps},
                             {"copy_gbps", ceilings.copy_gbps}};
}

void ResultsFile::save() const {
  if (!path_) return;
  std::filesystem::path temporary = *path_;
  temporary += temporary_suffix();
  {
    std::ofstream stream(temporary);
    stream << Json{{"head", content_->head}, {"rows", content_->rows}}.dump(1) << '\n';
    stream.flush();
    if (!stream) throw std::runtime_error(temporary.string() + " could not be written");
  }
  std::filesystem::rename(temporary, *path_);
}

}  // namespace chainfold::bench
