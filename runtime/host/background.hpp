// Work for which no caller waits, on one thread of the library's own.
#pragma once

#include <chrono>
#include <memory>

namespace chainfold::runtime {

class BackgroundWork {
 public:
  virtual ~BackgroundWork() = default;
  /// On the library's thread (roomy), which runs one at a time.
  virtual void run() noexcept = 0;
  /// While run() may be under way: it shall return soon. Thread-safe.
  virtual void give_up() noexcept = 0;
};

/// Runs `work` once it is due, if it has another owner then. Work that is due first runs first.
/// Where the system has no thread left it is never run, nor after the process began to exit. At
/// exit the work under way gives up, and the exit waits for it. A fork waits for the work under
/// way. Work that has not begun runs in the parent, and in a child once it adds work of its own.
/// Thread-safe.
void run_in_background(std::weak_ptr<BackgroundWork> work,
                       std::chrono::steady_clock::time_point due);

}  // namespace chainfold::runtime
