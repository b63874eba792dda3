#include "chainfold/runtime/host/roomy_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <memory>

#include "chainfold/codegen/base/float_environment.hpp"

namespace chainfold::runtime {
namespace {

thread_local bool is_roomy = false;

struct Job {
  void (*call)(void*) noexcept;
  void* argument;
};

void* run_job(void* argument) {
  const codegen::DefaultFloatEnvironment environment;  // a thread begins with its maker's
  is_roomy = true;
  const std::unique_ptr<Job> job(static_cast<Job*>(argument));
  job->call(job->argument);
  return nullptr;
}

/// While one lives, new threads take no signals of the program, but those that they cause.
class NoSignals {
 public:
  NoSignals() {
    sigset_t set;
    sigfillset(&set);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&set, own);
    pthread_sigmask(SIG_SETMASK, &set, &saved_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t saved_{};
};

}  // namespace

bool start_roomy(pthread_t& thread, void (*call)(void*) noexcept, void* argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  const NoSignals none;
  auto job = std::make_unique<Job>(Job{.call = call, .argument = argument});
  const bool started = pthread_attr_setstacksize(&attributes, kRoomyStack) == 0 &&
                       pthread_create(&thread, &attributes, run_job, job.get()) == 0;
  if (started) static_cast<void>(job.release());  // the thread's
  pthread_attr_destroy(&attributes);
  return started;
}

void run_roomy(void (*call)(void*) noexcept, void* argument) {
  pthread_t thread{};
  if (!is_roomy && start_roomy(thread, call, argument)) {
    pthread_join(thread, nullptr);
    return;
  }
  const codegen::DefaultFloatEnvironment environment;
  call(argument);
}

}  // namespace chainfold::runtime
