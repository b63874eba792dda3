// Which kernels ask the second-level cache to let go of what they store first.
#include <gtest/gtest.h>

#include <string>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/emit/cuda/cuda.hpp"

namespace chainfold::test {
namespace {

std::string text_of(const Computation& computation, const codegen::Target& target,
                    const codegen::PlanRequest& request) {
  const codegen::Compiled compiled = codegen::compile_graph(computation.graph(), target, request);
  return codegen::emit_cuda(compiled.program, target.arch).kernels_text;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(KeptLoads, OfScansByLanesAndByTheCopyEngine) {
  const codegen::Target target = codegen::gpu_target(90);
  const auto running = [](const auto& partition) {
    return over(partition, cast<f16>(inclusive_sum(input<f16>("x"))));
  };
  // 32 MiB are 2^24 elements of the output.
  const std::string segments_text = text_of(running(segments(64)), target, {.segment = 64});
  EXPECT_TRUE(has(segments_text, "cf_ld_kept(b0_in_0"));
  EXPECT_TRUE(has(segments_text, "keep_hint = cf_keeps(p0_segments >= 262144ll)"));
  const std::string whole_text =
      text_of(over(whole(), inclusive_sum(input<float>("x"))), target, {.segment = 0});
  EXPECT_TRUE(has(whole_text, "cf_ld_kept(b0_in_0"));
  EXPECT_TRUE(has(whole_text, "keep_hint = cf_keeps(p0_elements >= 8388608ll)"));
  EXPECT_TRUE(has(whole_text, ", keep_hint);")) << "copies";
  EXPECT_FALSE(has(whole_text, "cf_ld_kept(b1_")) << "of inputs alone";
  const std::string blocked_text = text_of(running(whole()), target, {.segment = 0});
  EXPECT_TRUE(has(blocked_text, "keep_hint = cf_keeps(p0_elements >= 16777216ll)"));
  EXPECT_TRUE(has(blocked_text, ", keep_hint);")) << "copies in";
  EXPECT_TRUE(has(blocked_text, "cf_copy_out<")) << "and out";
  int zeros = 0;  // nothing is added to the elements themselves
  for (std::size_t at = 0; (at = blocked_text.find("+ 0.0", at)) != std::string::npos; ++at)
    ++zeros;
  EXPECT_LT(zeros, 42) << "rows of a tile";
}

TEST(KeptLoads, NotWhereTheyWereNotMeasuredOrDoNotPay) {
  const Computation scan = over(whole(), cast<f16>(inclusive_sum(input<f16>("x"))));
  EXPECT_FALSE(has(text_of(scan, codegen::gpu_target(80), {.segment = 0}), "keep_hint"));
  EXPECT_FALSE(has(text_of(scan, codegen::gpu_target(100), {.segment = 0}), "keep_hint"));
  const codegen::Target target = codegen::gpu_target(90);
  const std::int64_t few = codegen::size_class_of(scan.graph(), target, 0, 1);
  EXPECT_FALSE(has(text_of(scan, target, {.segment = 0, .size_limit = few}), "keep_hint"));
  const Computation fold = over(segments(64), sum(input<f16>("x")));
  EXPECT_FALSE(has(text_of(fold, target, {.segment = 64}), "keep_hint"));
}

}  // namespace
}  // namespace chainfold::test
