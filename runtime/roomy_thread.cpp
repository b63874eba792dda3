#include "chainfold/runtime/roomy_thread.hpp"

#include <pthread.h>

#include <csignal>

#include "chainfold/codegen/float_environment.hpp"

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
  const Job& job = *static_cast<const Job*>(argument);
  job.call(job.argument);
  return nullptr;
}

/// While one lives, threads are made that take no signals of the program, but those that they
/// cause.
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

bool start(pthread_t& thread, Job& job) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  const NoSignals none;
  const bool started = pthread_attr_setstacksize(&attributes, kRoomyStack) == 0 &&
                       pthread_create(&thread, &attributes, run_job, &job) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

void run_roomy(void (*call)(void*) noexcept, void* argument) {
  Job job{.call = call, .argument = argument};
  pthread_t thread{};
  if (!is_roomy && start(thread, job)) {
    pthread_join(thread, nullptr);
    return;
  }
  const codegen::DefaultFloatEnvironment environment;
  call(argument);
}

}  // namespace chainfold::runtime
