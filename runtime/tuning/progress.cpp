#include "chainfold/runtime/tuning/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "chainfold/runtime/tuning/progress_text.hpp"

namespace chainfold {

namespace runtime {

namespace {

using namespace std::chrono_literals;
constexpr auto kLinesApart = 3s;
constexpr auto kBarsApart = 50ms;
/// Back to the beginning of the terminal's line, and clear what is behind.
constexpr const char* kClearLine = "\r\033[K";

bool is_over(const TuningProgress& progress) {
  return progress.stage == "tuned" || progress.stage == "failed";
}

std::string figures(const TuningProgress& progress) {
  std::string text = fmt::format("{} {}/{}", progress.stage, progress.done, progress.total);
  if (progress.best_ms > 0) text += fmt::format(", best {:.4g} ms", progress.best_ms);
  return text + fmt::format(", {:.1f} s", progress.seconds);
}

}  // namespace

std::string ProgressText::next(const TuningProgress& progress, Time now) {
  return columns_ > 0 ? bar(progress, now) : line(progress, now);
}

std::string ProgressText::bar(const TuningProgress& progress, Time now) {
  constexpr std::size_t kCells = 20, kLeastName = 12;
  if (is_over(progress)) {
    last_.reset();
    return kClearLine;
  }
  if (last_ && now - *last_ < kBarsApart && progress.done < progress.total) return {};
  last_ = now;
  const auto done = static_cast<std::size_t>(std::max(0, progress.done));
  const auto total = static_cast<std::size_t>(std::max(1, progress.total));
  const std::size_t cells = std::min(kCells, kCells * done / total);
  const std::string right = fmt::format(" [{}{}] {}", std::string(cells, '#'),
                                        std::string(kCells - cells, '.'), figures(progress));
  constexpr std::string_view kBefore = "tuning ";
  const auto columns = static_cast<std::size_t>(columns_ - 1);  // the last one would wrap
  const std::size_t taken = kBefore.size() + right.size();
  std::string name(progress.what);
  if (taken + name.size() > columns) {
    const std::size_t room = columns > taken ? columns - taken : 0;
    name = room >= kLeastName ? name.substr(0, room - 3) + "..." : std::string();
  }
  return (kClearLine + (std::string(kBefore) + name + right).substr(0, columns));
}

std::string ProgressText::line(const TuningProgress& progress, Time now) {
  const bool over = is_over(progress);
  if (!over && progress.seconds < std::chrono::duration<double>(kLinesApart).count()) return {};
  if (last_ && now - *last_ < kLinesApart) return {};
  last_ = now;
  if (!over) return fmt::format("tuning {}: {}\n", progress.what, figures(progress));
  if (progress.stage == "failed") {
    return fmt::format("tuning {} failed after {:.1f} s\n", progress.what, progress.seconds);
  }
  return fmt::format("tuned {}: {}, {:.4g} ms (the default {:.4g} ms), in {:.1f} s\n",
                     progress.what, progress.best_plan, progress.best_ms, progress.default_ms,
                     progress.seconds);
}

}  // namespace runtime

namespace {

/// Columns of the terminal that standard error is, or 0.
int columns_of_stderr() {
  constexpr int kUsual = 80;
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

struct Shown {
  std::mutex mutex;
  runtime::ProgressText text{columns_of_stderr()};
};

}  // namespace

void progress_to_stderr(const TuningProgress& progress) {
  // Never destroyed: a tuning may end after the statics of the thread that asked for it.
  static auto& shown = *new Shown;
  try {
    const std::lock_guard lock(shown.mutex);
    const std::string text = shown.text.next(progress, std::chrono::steady_clock::now());
    if (!text.empty()) std::fwrite(text.data(), 1, text.size(), stderr);
  } catch (...) {  // where there is no memory for a line, none is written
  }
}

}  // namespace chainfold
