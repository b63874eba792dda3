// What a caller can do wrong with scans, on the CPU: each mistake is a typed error that names the
// input and the fix, and nothing is written.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/cpu_test.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;
constexpr float kUntouched = -7777;
constexpr int kElements = 24;

class ScanErrors : public CpuTest {
 protected:
  template <class F>
  void refused(F&& call, ErrorCode code, const std::string& input,
               const std::vector<std::string>& words) const {
    expect_error<UserError>(std::forward<F>(call), code, input, words);
    for (float value : out_) ASSERT_EQ(value, kUntouched) << "an output was written";
  }
  /// A launch over the first `elements` of data_.
  [[nodiscard]] LaunchArgs args(const Outputs& outputs, int elements = kElements) const {
    return {.elements = elements, .inputs = {{"x", data_}}, .outputs = outputs};
  }

  dsl::Input<DType::f32> x_ = cf::input<float>("x");
  std::vector<float> data_ = std::vector<float>(kElements, 1.0F);
  std::vector<float> out_ = std::vector<float>(2 * kElements, kUntouched);
};

TEST_F(ScanErrors, Columns) {
  const Computation computation = cf::over(cf::columns(4), cf::inclusive_sum(x_));
  refused([&] { static_cast<void>(compiled(computation)); }, ErrorCode::unsupported, "",
          {"columns", "segments(n)"});
  refused([&] { cf::explain(computation, cf::target("sm_90")); }, ErrorCode::unsupported, "",
          {"columns"});
}

TEST_F(ScanErrors, Strides) {
  const Kernel kernel = compiled(cf::over(cf::segments(4), cf::inclusive_sum(x_)));
  const Outputs outputs{{out_.data(), kElements}};
  const std::vector<std::string> words{"'x' has a stride of 6 for segments of 4", "gaps"};
  const Bindings gaps{Binding("x", data_).stride(6)};
  refused([&] { kernel.run_into(gaps, outputs); }, ErrorCode::unsupported, "x", words);
  refused([&] { kernel.launch({.elements = 16, .inputs = gaps, .outputs = outputs}); },
          ErrorCode::unsupported, "x", words);
  refused([&] { kernel.prepare({.elements = 16, .inputs = gaps}); }, ErrorCode::unsupported, "x",
          words);
}

TEST_F(ScanErrors, OutputsWithoutRoom) {
  const Kernel kernel = compiled(cf::over(cf::segments(4), cf::inclusive_sum(x_)));
  EXPECT_EQ(kernel.output_count({{"x", data_}}), 6);
  EXPECT_EQ(kernel.output_count({{"x", data_}}, 0), kElements);
  const Outputs few{{out_.data(), 23}};
  const std::vector<std::string> words{"output 0 has room for 23 values, 24 are needed",
                                       "one an element"};
  refused([&] { kernel.run_into({{"x", data_}}, few); }, ErrorCode::too_small, "output 0", words);
  refused([&] { kernel.launch(args(few)); }, ErrorCode::too_small, "output 0", words);
}

TEST_F(ScanErrors, MemoryInCommon) {
  const Kernel kernel =
      compiled(cf::over(cf::segments(4), cf::inclusive_sum(x_), cf::inclusive(cf::max(x_))));
  const Kernel doubles =
      compiled(cf::over(cf::segments(4), cf::inclusive_sum(cf::cast<double>(x_))));
  std::vector<float> memory(4 * kElements, 2.0F);
  const std::vector<float> before = memory;
  const Bindings x{{"x", static_cast<const float*>(memory.data()), kElements}};
  float* const free = memory.data() + 2 * kElements;
  auto both = [&](const Kernel& k, const Outputs& outputs, const std::string& which,
                  const std::vector<std::string>& words) {
    refused([&] { k.run_into(x, outputs); }, ErrorCode::invalid_argument, which, words);
    refused([&] { k.launch({.elements = kElements, .inputs = x, .outputs = outputs}); },
            ErrorCode::invalid_argument, which, words);
    EXPECT_EQ(memory, before);
  };
  const std::vector<std::string> overlap{"output 0 overlaps input 'x'", "exactly"};
  both(kernel, {{memory.data() + 1, kElements}, {free, kElements}}, "output 0", overlap);
  both(kernel, {{memory.data() + kElements - 1, kElements}, {free, kElements}}, "output 0",
       overlap);
  both(kernel, {{free, kElements}, {free + kElements - 1, kElements}}, "output 1",
       {"output 1 overlaps output 0"});
  both(doubles, {{reinterpret_cast<double*>(memory.data()), kElements}}, "output 0",
       {"is the memory of input 'x'", "8 bytes", "the input 4"});
}

TEST_F(ScanErrors, Carries) {
  const Kernel whole =
      compiled(cf::over(cf::whole(), cf::inclusive(cf::mean(x_)), cf::inclusive(cf::max(x_))));
  EXPECT_EQ(whole.carry_bytes(), 48);  // (high, low) of the mean's sum, and the maximum
  alignas(16) std::byte memory[256] = {};
  const Carry good{memory, 48}, other{memory + 64, 48};
  auto launch = [&](const Kernel& kernel, Carry in, Carry out) {
    LaunchArgs launch = args({{out_.data(), kElements}, {out_.data() + kElements, kElements}});
    launch.carry_in = in;
    launch.carry_out = out;
    return [kernel, launch] { kernel.launch(launch); };
  };
  refused(launch(whole, {memory, 47}, other), ErrorCode::too_small, "carry_in",
          {"47 bytes", "take 48", "carry_bytes()"});
  refused(launch(whole, {}, {memory, 16}), ErrorCode::too_small, "carry_out", {"16 bytes"});
  refused(launch(whole, {nullptr, 48}, {}), ErrorCode::null_pointer, "carry_in", {"null"});
  refused(launch(whole, {memory + 8, 64}, other), ErrorCode::misaligned, "carry_in", {"16 bytes"});
  refused(launch(whole, good, {memory + 32, 48}), ErrorCode::invalid_argument, "carry_out",
          {"overlaps carry_in", "two buffers"});
  const Kernel segmented =
      compiled(cf::over(cf::segments(4), cf::inclusive_sum(x_), cf::exclusive_sum(x_)));
  EXPECT_EQ(segmented.carry_bytes(), 0);
  refused(launch(segmented, good, {}), ErrorCode::unsupported, "carry_in", {"whole()"});
  const Kernel folds = compiled(cf::over(cf::whole(), cf::sum(x_), cf::max(x_)));
  EXPECT_EQ(folds.carry_bytes(), 0);
  refused(launch(folds, {}, good), ErrorCode::unsupported, "carry_out", {"no scan"});
}

TEST_F(ScanErrors, PinnedPlans) {
  struct Row {
    dsl::Partition partition;
    const char *plan, *words;
  };
  const Row rows[] = {
      {cf::whole(), "scan_tile warps=1 depth=1 bytes=16 simt", "the whole input"},
      {cf::segments(64), "scan_block warps=1 depth=1 bytes=16 simt", "segments of 64"},
      {cf::segments(64), "rows warps=1 depth=1 rows=1 bytes=16 simt", "segments of 64"},
      {cf::whole(), "look_back warps=4 depth=1 tile=0 bytes=16 simt", "the whole input"},
      {cf::segments(64), "look_back warps=1 depth=4 across=4 tile=0 bytes=16 simt",
       "segments of 64"},
      {cf::segments(64), "scan_run warps=1 depth=64 bytes=16 simt", "segments of 64"},
  };
  for (const Row& row : rows) {
    Options pinned = options_;
    pinned.plan = row.plan;
    refused(
        [&] {
          static_cast<void>(cf::compile(cf::over(row.partition, cf::inclusive_sum(x_)), pinned));
        },
        ErrorCode::unsupported, "plan", {row.plan, row.words, "leave Options::plan empty"});
  }
  // Nor does a plan of scans serve folds.
  Options pinned = options_;
  pinned.plan = "scan_run warps=1 depth=4 bytes=16 simt";
  refused([&] { static_cast<void>(cf::compile(cf::over(cf::segments(64), cf::sum(x_)), pinned)); },
          ErrorCode::unsupported, "plan", {pinned.plan, "not legal", "scan_run serves scans"});
  pinned.plan = "scan_run rows=4";
  refused(
      [&] {
        static_cast<void>(cf::compile(cf::over(cf::segments(64), cf::inclusive_sum(x_)), pinned));
      },
      ErrorCode::invalid_argument, "plan", {"scan_run has no 'rows'"});
}

TEST_F(ScanErrors, TypesOfOutputs) {
  const Kernel kernel = compiled(cf::over(cf::segments(4), cf::inclusive_sum(x_)));
  refused([&] { kernel.run<double>({{"x", data_}}); }, ErrorCode::type_mismatch, "output 0",
          {"output 0 is float"});
}

}  // namespace
}  // namespace chainfold::test
