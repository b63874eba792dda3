#include "chainfold/runtime/host/background.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "chainfold/runtime/host/roomy_thread.hpp"

namespace chainfold::runtime {
namespace {

using Clock = std::chrono::steady_clock;

struct Item {
  Clock::time_point due;
  std::weak_ptr<BackgroundWork> work;
};

class Queue {
 public:
  /// Never destroyed: kernels may be made while statics are destroyed.
  static Queue& of_process() {
    static Queue* const queue = new Queue;
    return *queue;
  }

  void add(Item item) {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    items_.push_back(std::move(item));
    if (!has_thread_) has_thread_ = start_roomy(thread_, &Queue::work, this);
    if (!has_thread_) items_.clear();
    changed_.notify_one();
  }

 private:
  Queue() {
    // Before this library's own statics are destroyed; compilers have none that are.
    std::atexit([] { of_process().end(); });
    pthread_atfork([] { of_process().before_fork(); }, [] { of_process().after_fork(); },
                   [] { of_process().in_child(); });
  }

  static void work(void* queue) noexcept { static_cast<Queue*>(queue)->loop(); }

  void loop() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      const auto first = std::min_element(
          items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.due < b.due; });
      if (first == items_.end()) {
        changed_.wait(lock);
      } else if (const Clock::time_point due = first->due; Clock::now() < due) {
        changed_.wait_until(lock, due);
      } else {
        current_ = first->work.lock();
        items_.erase(first);
        if (!current_) continue;
        lock.unlock();
        {
          const std::lock_guard busy(busy_);
          current_->run();
          lock.lock();
          std::shared_ptr<BackgroundWork> done = std::exchange(current_, nullptr);
          lock.unlock();
          done.reset();  // which may be the last owner's, and unload code
        }
        lock.lock();
      }
    }
  }

  void end() {
    std::unique_lock lock(mutex_);
    ends_ = true;
    if (!has_thread_) return;
    if (current_) current_->give_up();
    changed_.notify_one();
    lock.unlock();
    pthread_join(thread_, nullptr);
  }

  // Compilers hold locks of their own while they work, which would stay locked in a child.
  void before_fork() {
    busy_.lock();
    mutex_.lock();
  }
  void after_fork() {
    mutex_.unlock();
    busy_.unlock();
  }
  void in_child() {
    has_thread_ = false;
    if (current_) {  // which was about to begin; unloading code is no work for here
      items_.push_back({.due = Clock::now(), .work = current_});
      static_cast<void>(new std::shared_ptr<BackgroundWork>(std::move(current_)));
      current_.reset();
    }
    new (&changed_) std::condition_variable;  // its waiter is not here
    after_fork();
  }

  std::mutex busy_;   // held while work runs; taken before mutex_
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::vector<Item> items_;
  std::shared_ptr<BackgroundWork> current_;
  pthread_t thread_{};
  bool has_thread_ = false, ends_ = false;
};

}  // namespace

void run_in_background(std::weak_ptr<BackgroundWork> work, Clock::time_point due) {
  Queue::of_process().add({.due = due, .work = std::move(work)});
}

}  // namespace chainfold::runtime
