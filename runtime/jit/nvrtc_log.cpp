#include "chainfold/runtime/jit/nvrtc_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace chainfold::runtime::nvrtc_detail {
namespace {

/// Takes the next line off the text; false at its end.
bool next_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const std::size_t end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

/// The number at the start of the text, or -1.
int leading_number(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : -1;
}

/// The number that ends right before `unit`, or -1: of "12 bytes stack frame, ..." before " bytes".
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return -1;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return leading_number(line.substr(begin, end - begin));
}

std::string_view nth_line(std::string_view text, int number) {
  std::string_view line;
  for (int i = 0; i < number; ++i) {
    if (!next_line(text, line)) return {};
  }
  return line;
}

void set_if_found(int& field, int value) {
  if (value >= 0) field = value;
}

}  // namespace

ErrorPlace first_error(const std::string& log) {
  std::string_view rest = log;
  std::string_view line;
  while (next_line(rest, line)) {
    // "chainfold.cu(17): error: ...", then the line and a caret, both indented.
    const std::size_t open = line.find('(');
    const std::size_t close = line.find("): ", open);
    if (open != std::string_view::npos && close != std::string_view::npos &&
        line.substr(close, 20).find("error") != std::string_view::npos) {
      ErrorPlace place;
      place.line = std::max(leading_number(line.substr(open + 1)), 0);
      std::string_view quoted;
      std::string_view caret;
      if (place.line > 0 && next_line(rest, quoted) && next_line(rest, caret)) {
        const std::size_t at = caret.find_first_not_of(' ');
        const std::size_t indent = quoted.find_first_not_of(" \t");
        if (at != std::string_view::npos && caret.substr(at) == "^" && at >= indent) {
          place.column = static_cast<int>(at - indent);
        }
      }
      return place;
    }
    // "ptxas application ptx input, line 37; error   : ..."
    constexpr std::string_view kPtxLine = "ptx input, line ";
    const std::size_t ptx = line.find(kPtxLine);
    if (ptx != std::string_view::npos && line.find("; error", ptx) != std::string_view::npos) {
      return {std::max(leading_number(line.substr(ptx + kPtxLine.size())), 0), -1, true};
    }
  }
  return {};
}

std::string quote_line(const std::string& text, const ErrorPlace& place) {
  if (place.line <= 0) return {};
  const std::string_view line = nth_line(text, place.line);
  if (line.data() == nullptr) return {};
  std::string quoted = fmt::format("{:>4} | {}", place.line, line);
  if (place.column >= 0) {
    const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
    quoted += fmt::format("\n     | {}{:>{}}", line.substr(0, indent), '^', place.column + 1);
  }
  return quoted;
}

std::vector<KernelResources> parse_resources(const std::string& log) {
  std::vector<KernelResources> kernels;
  std::string_view rest = log;
  std::string_view line;
  while (next_line(rest, line)) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    const std::size_t entry = line.find(kEntry);
    if (entry != std::string_view::npos) {
      const std::string_view name = line.substr(entry + kEntry.size());
      kernels.emplace_back().name = name.substr(0, name.find('\''));
    }
    if (kernels.empty()) continue;
    KernelResources& kernel = kernels.back();
    set_if_found(kernel.stack, number_before(line, " bytes stack frame"));
    set_if_found(kernel.spill_store, number_before(line, " bytes spill stores"));
    set_if_found(kernel.spill_load, number_before(line, " bytes spill loads"));
    set_if_found(kernel.registers, number_before(line, " registers"));
    set_if_found(kernel.shared, number_before(line, " bytes smem"));
  }
  return kernels;
}

std::string builtins_hint(const std::string& log, const std::string& nvrtc_file) {
  if (log.find("libnvrtc-builtins") == std::string::npos) return {};
  return fmt::format(
      "{} needs its companion libnvrtc-builtins of the same version, which the loader did not "
      "find. "
      "Fix: install both from one CUDA Toolkit or one wheel, side by side, or add their folder to "
      "LD_LIBRARY_PATH",
      nvrtc_file);
}

}  // namespace chainfold::runtime::nvrtc_detail
