#include "chainfold/tests/support/golden_digest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "chainfold/runtime/cache/hash128.hpp"

namespace chainfold::test {
namespace {

bool names_value(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// The values that a line names, the one that it defines first.
std::vector<std::string> values_of(const std::string& line) {
  std::vector<std::string> values;
  for (std::size_t at = line.find('%'); at != std::string::npos; at = line.find('%', at + 1)) {
    const auto end = std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                      line.end(), names_value);
    values.emplace_back(line.begin() + static_cast<std::ptrdiff_t>(at), end);
  }
  return values;
}

/// The word of the operation in a line of a launch's body: "load"; empty where there is none.
std::string operation_of(const std::string& line) {
  if (!line.starts_with("  ")) return {};
  std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  if (line[begin] == '%') {
    const std::size_t equals = line.find(" = ", begin);
    if (equals == std::string::npos) return {};
    begin = equals + 3;
  }
  const auto end = std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(),
                                    [](char c) { return names_value(c) || c == '_'; });
  return {line.begin() + static_cast<std::ptrdiff_t>(begin), end};
}

std::string text_digest(std::string_view text) {
  return fmt::format("{} ({} lines)", runtime::hash128(text).hex().substr(0, 16),
                     std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

std::string digest(const codegen::Program& program, std::string_view text,
                   std::string_view kernels) {
  std::map<std::string, int> operations;
  std::set<std::string> under_way;
  std::size_t most = 0;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    const std::string operation = operation_of(line);
    if (operation.empty()) continue;
    ++operations[operation];
    const std::vector<std::string> values = values_of(line);
    const bool uses = std::any_of(values.begin(), values.end(),
                                  [&](const std::string& v) { return under_way.contains(v); });
    if (uses) under_way.clear();
    if (operation == "load" && !values.empty()) under_way.insert(values.front());
    most = std::max(most, under_way.size());
  }
  std::string kinds;
  for (const auto& [operation, count] : operations)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", operation, count);
  std::int64_t shared = 0;
  for (const codegen::Launch& launch : program.launches)
    shared = std::max(shared, codegen::shared_layout(launch).bytes);
  return fmt::format("program {}, kernels {}; {}; {} loads in flight; {} bytes shared",
                     text_digest(text), text_digest(kernels), kinds, most, shared);
}

std::set<std::string> features_of(std::string_view head, std::string_view text) {
  std::set<std::string> features;
  std::istringstream plan{std::string(head)}, program{std::string(text)};
  for (std::string line; std::getline(plan, line);) {
    if (line.starts_with("  strategy ")) features.insert(line.substr(2));
    const std::size_t unit = line.find(" on ");
    if (line.starts_with("  fold ") && unit != std::string::npos)
      features.insert("unit " + line.substr(unit + 4, line.find(',', unit) - unit - 4));
  }
  for (std::string line; std::getline(program, line);)
    if (const std::string operation = operation_of(line); !operation.empty())
      features.insert("operation " + operation);
  return features;
}

}  // namespace chainfold::test
