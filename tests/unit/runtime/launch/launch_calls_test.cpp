// What launches ask of the driver, seen by one that counts: each call costs host time, some of them
// more than all that the library does itself.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

constexpr std::int64_t kElements = 1 << 20;

/// A kernel with memory for its launches, on the driver that counts. Used in a process of its own:
/// a process keeps its driver for ever.
class CountedLaunch {
 public:
  CountedLaunch()
      : CountedLaunch(cf::over(cf::whole(), cf::sum(cf::input<float>("x"))), "", kElements, 1) {}
  CountedLaunch(const Computation& computation, const std::string& plan, std::int64_t elements,
                std::int64_t results)
      : library_(dlopen(CHAINFOLD_COUNTING_DRIVER, RTLD_NOW)) {
    setenv("CHAINFOLD_LIBCUDA", CHAINFOLD_COUNTING_DRIVER, 1);
    context_ = &runtime::Context::of(0);
    Options options;
    options.target = cf::target("gpu");
    options.tuning = Tuning::off;
    options.plan = plan;
    kernel_ = std::make_unique<Kernel>(cf::compile(computation, options));
    in_ = runtime::DeviceBuffer(*context_, static_cast<std::size_t>(elements) * sizeof(float));
    out_ = runtime::DeviceBuffer(*context_, static_cast<std::size_t>(results) * sizeof(float));
    args_ = {.elements = elements,
             .inputs = {{"x", static_cast<const float*>(in_.data())}},
             .outputs = {{static_cast<float*>(out_.data()), results}}};
    const std::int64_t bytes = kernel_->scratch_bytes(args_);
    scratch_ = runtime::DeviceBuffer(*context_, static_cast<std::size_t>(bytes));
    args_.scratch = {scratch_.data(), bytes};
  }

  /// "cuLaunchKernelEx 2, ..., all 5": the calls that one launch makes.
  [[nodiscard]] std::string calls() const {
    const std::vector<const char*> names = {"cuLaunchKernelEx", "cuCtxGetCurrent",
                                            "cuPointerGetAttributes"};
    std::vector<std::int64_t> before;
    for (const char* name : names) before.push_back(count(name));
    const std::int64_t all = count(nullptr);
    kernel_->launch(args_);
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
      text += fmt::format("{} {}, ", names[i], count(names[i]) - before[i]);
    return text + fmt::format("all {}", count(nullptr) - all);
  }

  /// "2 launches, 1 overlaps, scratch": the kernels of one launch.
  [[nodiscard]] std::string kernels() const {
    const auto overlaps = [&] {
      using Overlaps = std::int64_t();
      return reinterpret_cast<Overlaps*>(dlsym(library_, "counting_driver_overlaps"))();
    };
    const std::int64_t launches = count("cuLaunchKernelEx"), before = overlaps();
    kernel_->launch(args_);
    return fmt::format("{} launches, {} overlaps, {}", count("cuLaunchKernelEx") - launches,
                       overlaps() - before, args_.scratch.bytes > 0 ? "scratch" : "none");
  }

  /// The code of the error of a launch, "none" without one, and what the driver was asked of
  /// memory.
  [[nodiscard]] std::string outcome() const {
    const std::int64_t asked = count("cuPointerGetAttributes");
    std::string result = "none";
    try {
      kernel_->launch(args_);
    } catch (const UserError& error) {
      result = error_code_name(error.code());
    }
    return fmt::format("{} after {}", result, count("cuPointerGetAttributes") - asked);
  }

  void free_output() { out_ = {}; }
  void use_host_output(float& value) { args_.outputs = {{&value, 1}}; }
  [[nodiscard]] const runtime::Context& context() const { return *context_; }

 private:
  [[nodiscard]] std::int64_t count(const char* symbol) const {
    using Calls = std::int64_t(const char*);
    return reinterpret_cast<Calls*>(dlsym(library_, "counting_driver_calls"))(symbol);
  }

  void* library_;
  const runtime::Context* context_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
  runtime::DeviceBuffer in_, out_, scratch_;
  LaunchArgs args_;
};

class LaunchCallsProcess : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, which has no driver yet
  }
};

TEST_F(LaunchCallsProcess, AWarmLaunchAsksTheDriverForNothingTwice) {
  EXPECT_EXIT(
      {
        const CountedLaunch launch;
        const runtime::ContextScope scope(launch.context());
        fmt::print(stderr, "[first: {}]", launch.calls());
        fmt::print(stderr, "[then: {}]", launch.calls());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      "\\[first: cuLaunchKernelEx 2, cuCtxGetCurrent 4, cuPointerGetAttributes 3, all 9\\]"
      "\\[then: cuLaunchKernelEx 2, cuCtxGetCurrent 1, cuPointerGetAttributes 0, all 3\\]");
}

/// The first kernel of a program with whatever stands before it, others with those of the same
/// launch: what they read before they wait may be what a foreign kernel still writes.
TEST_F(LaunchCallsProcess, KernelsOverlapWithThoseBeforeThem) {
  EXPECT_EXIT(
      {
        const auto launch = [](std::int64_t elements) {
          return CountedLaunch(cf::over(cf::whole(), cf::sum(cf::input<float>("x"))),
                               "parts warps=1 depth=1 parts=264 bytes=16 simt", elements, 1)
              .kernels();
        };
        const CountedLaunch parts;
        const runtime::ContextScope scope(parts.context());
        constexpr std::int64_t kPart = 128;  // of which one is not merged
        fmt::print(stderr, "[{}][{}][{}]", parts.kernels(), launch(kPart), launch(kPart + 1));
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      "\\[2 launches, 2 overlaps, scratch\\]\\[1 launches, 1 overlaps, none\\]"
      "\\[2 launches, 2 overlaps, scratch\\]");
}

TEST_F(LaunchCallsProcess, MemoryOfTheHostIsRefusedEachTime) {
  EXPECT_EXIT(
      {
        CountedLaunch launch;
        fmt::print(stderr, "[{}]", launch.outcome());
        float value = 0;
        launch.use_host_output(value);
        for (int i = 0; i < 2; ++i) fmt::print(stderr, "[{}]", launch.outcome());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      "\\[none after 3\\]\\[wrong_memory after 1\\]\\[wrong_memory after 1\\]");
}

TEST_F(LaunchCallsProcess, MemoryThatWasFreedIsAskedAboutAgain) {
  EXPECT_EXIT(
      {
        CountedLaunch launch;
        fmt::print(stderr, "[{}]", launch.outcome());
        launch.free_output();
        fmt::print(stderr, "[{}]", launch.outcome());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "\\[none after 3\\]\\[wrong_memory after 1\\]");
}

}  // namespace
}  // namespace chainfold::test
