// What a caller can do wrong, through the public API on the CPU: each mistake is a typed error that
// names the input and the fix, and nothing is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/type_names.hpp"
#include "chainfold/tests/support/cpu_test.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;
constexpr float kUntouched = -7777;

class Errors : public CpuTest {
 protected:
  /// Sums of `size` elements of the f32 input x.
  [[nodiscard]] Kernel sums(std::int64_t size) const {
    return compiled(cf::over(cf::segments(size), cf::sum(x_)));
  }
  [[nodiscard]] Kernel total() const { return compiled(cf::over(cf::whole(), cf::sum(x_))); }

  /// `call` throws a UserError and leaves out_ alone.
  template <class F>
  void refused(F&& call, ErrorCode code, const std::string& input,
               const std::vector<std::string>& words) const {
    expect_error<UserError>(std::forward<F>(call), code, input, words);
    for (float value : out_) ASSERT_EQ(value, kUntouched) << "an output was written";
  }

  dsl::Input<DType::f32> x_ = cf::input<float>("x");
  std::vector<float> data_ = std::vector<float>(24, 1.0F);
  std::vector<float> out_ = std::vector<float>(24, kUntouched);
  Outputs outputs_{{out_.data(), out_.size()}};
};

// --- sizes

TEST_F(Errors, ASegmentSizeBelowOne) {
  refused([] { cf::segments(0); }, ErrorCode::invalid_argument, "", {"is 0", "at least 1"});
  refused([] { cf::segments(-3); }, ErrorCode::invalid_argument, "", {"is -3", "at least 1"});
  refused([] { cf::segments(~0ULL); }, ErrorCode::invalid_argument, "", {"below 2^63"});
  const Kernel wide = compiled(cf::over(cf::segments(cf::param<std::int64_t>("S")), cf::sum(x_)));
  const Kernel narrow = compiled(cf::over(cf::segments(cf::param<std::int32_t>("S")), cf::sum(x_)));
  for (const int size : {0, -1, -64}) {
    for (const Kernel& kernel : {wide, narrow}) {
      const Bindings bindings{{"x", data_}, {"S", size}};
      const std::vector<std::string> words{"segment size 'S' is " + std::to_string(size),
                                           "at least 1"};
      refused([&] { kernel.run<float>(bindings); }, ErrorCode::invalid_argument, "S", words);
      refused([&] { kernel.run_into(bindings, outputs_); }, ErrorCode::invalid_argument, "S",
              words);
      refused([&] { kernel.launch({.elements = 24, .inputs = bindings, .outputs = outputs_}); },
              ErrorCode::invalid_argument, "S", words);
      refused([&] { static_cast<void>(kernel.output_count(bindings)); },
              ErrorCode::invalid_argument, "S", words);
      refused([&] { kernel.prepare({.elements = 24, .inputs = {{"S", size}}}); },
              ErrorCode::invalid_argument, "S", words);
    }
  }
  refused(
      [&] {
        cf::explain(cf::over(cf::segments(cf::param<std::int64_t>("S")), cf::sum(x_)),
                    cf::target("sm_90"), 0);
      },
      ErrorCode::invalid_argument, "segment", {"at least 1"});
}

TEST_F(Errors, ACountThatIsNoMultiple) {
  const Kernel kernel = sums(5);
  const std::vector<std::string> words{
      "24 elements are no multiple of the segment size 5 (4 segments and 4 elements over)",
      "multiple", "tail"};
  refused([&] { kernel.run<float>({{"x", data_}}); }, ErrorCode::not_a_multiple, "x", words);
  refused([&] { kernel.run_into({{"x", data_}}, outputs_); }, ErrorCode::not_a_multiple, "x",
          words);
  refused(
      [&] {
        kernel.launch({.elements = 24, .inputs = {{"x", data_.data()}}, .outputs = outputs_});
      },
      ErrorCode::not_a_multiple, "x", words);
}

TEST_F(Errors, TheTailOptionGivesTheShorterLastSegment) {
  const Kernel kernel =
      compiled(cf::over(cf::segments(5, Tail::partial), cf::sum(x_), cf::count()));
  const auto [sums, counts] = kernel.run<float, std::int64_t>({{"x", data_}});
  EXPECT_EQ(sums, (std::vector<float>{5, 5, 5, 5, 4}));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{5, 5, 5, 5, 4}));
  const auto [one, count] = kernel.run<float, std::int64_t>({{"x", data_.data(), 3}});
  EXPECT_EQ(one, (std::vector<float>{3}));
  EXPECT_EQ(count, (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(std::get<0>(kernel.run<float, std::int64_t>({{"x", data_.data(), 0}})).empty());
}

TEST_F(Errors, NoElementsAreNoError) {
  const float* const nowhere = nullptr;
  const auto [none] = sums(4).run<float>({{"x", nowhere, 0}});
  EXPECT_TRUE(none.empty());
  sums(4).run_into({{"x", nowhere, 0}}, outputs_);
  sums(4).launch({.elements = 0, .inputs = {{"x", nowhere}}, .outputs = outputs_});
  EXPECT_EQ(out_[0], kUntouched);

  const Kernel identities =
      compiled(cf::over(cf::whole(), cf::sum(x_), cf::mean(x_), cf::variance(x_), cf::min(x_),
                        cf::max(x_), cf::count(), cf::any(x_ > 0), cf::all(x_ > 0)));
  const auto [sum, mean, variance, least, most, count, any, all] =
      identities.run<float, float, float, float, float, std::int64_t, bool, bool>(
          {{"x", nowhere, 0}});
  EXPECT_EQ(sum, std::vector<float>{0});
  EXPECT_FALSE(std::signbit(sum[0]));
  EXPECT_TRUE(std::isnan(mean.at(0)));
  EXPECT_TRUE(std::isnan(variance.at(0)));
  EXPECT_EQ(least, std::vector<float>{HUGE_VALF});
  EXPECT_EQ(most, std::vector<float>{-HUGE_VALF});
  EXPECT_EQ(count, std::vector<std::int64_t>{0});
  EXPECT_EQ(any, std::vector<std::uint8_t>{0});
  EXPECT_EQ(all, std::vector<std::uint8_t>{1});
  auto n = cf::input<std::int32_t>("n");
  const auto [low, high] =
      compiled(cf::over(cf::whole(), cf::min(n), cf::max(n)))
          .run<std::int32_t, std::int32_t>({{"n", std::vector<std::int32_t>{}}});
  EXPECT_EQ(low, std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max()});
  EXPECT_EQ(high, std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()});
}

TEST_F(Errors, LengthsThatDiffer) {
  const Kernel kernel = compiled(cf::over(cf::segments(4), cf::sum(x_ + cf::input<float>("y"))));
  const std::vector<float> shorter(20, 1.0F);
  refused([&] { kernel.run_into({{"x", data_}, {"y", shorter}}, outputs_); },
          ErrorCode::length_mismatch, "y",
          {"input 'y' has 20 elements but 'x' has 24", "the same length"});
  refused([&] { kernel.run<float>({{"y", data_}, {"x", shorter}}); }, ErrorCode::length_mismatch,
          "y", {"input 'y' has 24 elements but 'x' has 20"});
  refused(
      [&] {
        kernel.launch(
            {.elements = 24, .inputs = {{"x", data_}, {"y", shorter}}, .outputs = outputs_});
      },
      ErrorCode::length_mismatch, "y", {"input 'y' has 20 elements, the launch asks for 24"});
  refused([&] { sums(4).run<float>({{"x", data_.data()}}); }, ErrorCode::invalid_argument, "x",
          {"no length", "bind a span, or a pointer with its count"});
  refused([&] { sums(4).launch({.elements = -4, .inputs = {{"x", data_}}, .outputs = outputs_}); },
          ErrorCode::invalid_argument, "elements", {"-4", "must not be negative"});
  const Kernel counting = compiled(cf::over(cf::segments(4), cf::count()));
  refused([&] { counting.run<std::int64_t>({}); }, ErrorCode::invalid_argument, "",
          {"reads no input", "use launch()"});
  std::vector<std::int64_t> counts(2, -1);
  counting.launch({.elements = 8, .outputs = {{counts.data(), 2}}});
  EXPECT_EQ(counts, (std::vector<std::int64_t>{4, 4}));
}

TEST_F(Errors, MoreThanTwoToThe31ElementsWork) {
  const UntouchedPages zeros((std::size_t{1} << 31) + 4096);  // pages that take no memory
  zeros.data()[zeros.bytes() - 2] = 3;
  auto b = cf::input<std::uint8_t>("b");
  const Bindings bindings{{"b", zeros.data(), zeros.bytes()}};
  const auto [sum, most, count] =
      compiled(cf::over(cf::whole(), cf::sum(b), cf::max(b), cf::count()))
          .run<std::uint64_t, std::uint8_t, std::int64_t>(bindings);
  EXPECT_EQ(sum, std::vector<std::uint64_t>{3});
  EXPECT_EQ(most, std::vector<std::uint8_t>{3});
  EXPECT_EQ(count, std::vector<std::int64_t>{(std::int64_t{1} << 31) + 4096});
  const auto [rows] =
      compiled(cf::over(cf::segments(4096), cf::max(b))).run<std::uint8_t>(bindings);
  ASSERT_EQ(rows.size(), (std::size_t{1} << 19) + 1);
  EXPECT_EQ(rows.back(), 3);
  EXPECT_EQ(rows[rows.size() - 2], 0);
}

TEST_F(Errors, SegmentSizesNearTheEndOfTheirType) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const Kernel kernel = compiled(cf::over(cf::segments(huge, Tail::partial), cf::sum(x_)));
  EXPECT_EQ(std::get<0>(kernel.run<float>({{"x", data_}})), std::vector<float>{24});
  const Kernel sized =
      compiled(cf::over(cf::segments(cf::param<std::int64_t>("S"), Tail::partial), cf::sum(x_)));
  EXPECT_EQ(std::get<0>(sized.run<float>({{"x", data_}, {"S", huge}})), std::vector<float>{24});
}

// --- pointers and room

TEST_F(Errors, NullPointers) {
  const float* const null_input = nullptr;
  float* const null_output = nullptr;
  refused([&] { sums(4).run_into({{"x", null_input, 24}}, outputs_); }, ErrorCode::null_pointer,
          "x", {"input 'x' is null", "bind a pointer to 24 elements of float"});
  refused(
      [&] { sums(4).launch({.elements = 24, .inputs = {{"x", null_input}}, .outputs = outputs_}); },
      ErrorCode::null_pointer, "x", {"input 'x' is null"});
  const Kernel two = compiled(cf::over(cf::segments(4), cf::sum(x_), cf::max(x_)));
  const Outputs second_null{{out_.data(), 6}, {null_output, 6}};
  refused([&] { two.run_into({{"x", data_}}, second_null); }, ErrorCode::null_pointer, "output 1",
          {"output 1 is null", "room for 6 values"});
  refused([&] { two.launch({.elements = 24, .inputs = {{"x", data_}}, .outputs = second_null}); },
          ErrorCode::null_pointer, "output 1", {"output 1 is null"});
}

TEST_F(Errors, MisalignedPointers) {
  const auto* inside = reinterpret_cast<const std::byte*>(data_.data()) + 1;
  const Bindings bindings{{"x", static_cast<const void*>(inside), DType::f32, 20}};
  refused([&] { sums(4).run_into(bindings, outputs_); }, ErrorCode::misaligned, "x",
          {"input 'x'", "element size of 4 bytes"});
  refused([&] { sums(4).launch({.elements = 20, .inputs = bindings, .outputs = outputs_}); },
          ErrorCode::misaligned, "x", {"input 'x'", "element size of 4 bytes"});
  auto* out = reinterpret_cast<std::byte*>(out_.data()) + 2;
  const Outputs crooked{{static_cast<void*>(out), DType::f32, 10}};
  refused([&] { sums(4).run_into({{"x", data_}}, crooked); }, ErrorCode::misaligned, "output 0",
          {"output 0", "element size of 4 bytes"});
  refused([&] { sums(4).launch({.elements = 24, .inputs = {{"x", data_}}, .outputs = crooked}); },
          ErrorCode::misaligned, "output 0", {"output 0", "element size of 4 bytes"});
}

TEST_F(Errors, OutputsWithoutRoom) {
  const Outputs five{{out_.data(), 5}};
  const std::vector<std::string> words{"output 0 has room for 5 values, 6 are needed"};
  refused([&] { sums(4).run_into({{"x", data_}}, five); }, ErrorCode::too_small, "output 0", words);
  refused([&] { sums(4).launch({.elements = 24, .inputs = {{"x", data_}}, .outputs = five}); },
          ErrorCode::too_small, "output 0", words);
  const Kernel tail = compiled(cf::over(cf::segments(5, Tail::partial), cf::sum(x_)));
  const Outputs four{{out_.data(), 4}};
  refused([&] { tail.launch({.elements = 24, .inputs = {{"x", data_}}, .outputs = four}); },
          ErrorCode::too_small, "output 0", {"room for 4 values, 5 are needed"});
  refused([&] { tail.run_into({{"x", data_}}, {}); }, ErrorCode::invalid_argument, "outputs",
          {"the expression has 1 outputs, 0 were given"});
}

TEST_F(Errors, ScratchThatIsMissingTooSmallOrMisaligned) {
  const Kernel kernel = total();
  EXPECT_EQ(kernel.scratch_bytes({.elements = 24}), 0) << "one part is finished at once";
  const std::vector<float> many(10'000, 1.0F);
  const auto count = static_cast<std::int64_t>(many.size());
  const std::int64_t needed = kernel.scratch_bytes({.elements = count});
  ASSERT_GT(needed, 0);
  EXPECT_EQ(kernel.scratch_bytes({.elements = count, .inputs = {{"x", many.data() + 1}}}), needed);
  std::vector<double> scratch(static_cast<std::size_t>(needed) / sizeof(double) + 8, 0.25);
  auto* base = reinterpret_cast<std::byte*>(scratch.data());
  while (reinterpret_cast<std::uintptr_t>(base) % 16 != 0) ++base;
  LaunchArgs args{.elements = count, .inputs = {{"x", many}}, .outputs = outputs_};
  const std::string asked = "needs " + std::to_string(needed) + " bytes of scratch";
  refused([&] { kernel.launch(args); }, ErrorCode::null_pointer, "scratch",
          {asked, "ask scratch_bytes()"});
  args.scratch = {nullptr, needed};
  refused([&] { kernel.launch(args); }, ErrorCode::null_pointer, "scratch", {asked});
  args.scratch = {base, needed - 1};
  refused([&] { kernel.launch(args); }, ErrorCode::too_small, "scratch",
          {asked, std::to_string(needed - 1) + " were given"});
  args.scratch = {base + 4, needed};
  refused([&] { kernel.launch(args); }, ErrorCode::misaligned, "scratch", {"aligned to 16 bytes"});
  for (double value : scratch) ASSERT_EQ(value, 0.25) << "scratch was written";
  args.scratch = {base, needed};
  kernel.launch(args);
  EXPECT_EQ(out_[0], 10'000);
  EXPECT_EQ(out_[1], kUntouched);
}

// --- names and types

TEST_F(Errors, Names) {
  refused([&] { sums(4).run_into({{"x", data_}, {"z", data_}}, outputs_); },
          ErrorCode::unknown_input, "z", {"no input or parameter 'z'", "it uses: x"});
  refused([&] { sums(4).run_into({}, outputs_); }, ErrorCode::missing_input, "x",
          {"input 'x' (float) is not bound"});
  refused([&] { sums(4).run_into({{"x", data_}, {"x", data_}}, outputs_); },
          ErrorCode::duplicate_input, "x", {"'x' is bound twice", "once"});
  refused(
      [&] {
        sums(4).launch(
            {.elements = 24, .inputs = {{"x", data_}, {"y", data_}}, .outputs = outputs_});
      },
      ErrorCode::unknown_input, "y", {"it uses: x"});
  const Kernel scaled =
      compiled(cf::over(cf::segments(4), cf::sum(x_ * cf::param<float>("scale"))));
  refused([&] { scaled.run_into({{"x", data_}}, outputs_); }, ErrorCode::missing_input, "scale",
          {"parameter 'scale' (float) is not bound", "{\"scale\", value}"});
  refused([&] { scaled.run_into({{"x", data_}, {"scale", data_}}, outputs_); },
          ErrorCode::type_mismatch, "scale", {"parameter 'scale'", "not bound to a number"});
  refused([&] { scaled.run_into({{"x", 1.0F}, {"scale", 2.0F}}, outputs_); },
          ErrorCode::type_mismatch, "x", {"'x' is an input", "bind an array, not a number"});
  refused(
      [&] {
        scaled.launch(
            {.elements = 24, .inputs = {{"x", 1.0F}, {"scale", 2.0F}}, .outputs = outputs_});
      },
      ErrorCode::type_mismatch, "x", {"'x' is an input", "bind an array, not a number"});
}

TEST_F(Errors, NamesThatStandForTwoThings) {
  refused([&] { cf::over(cf::whole(), cf::sum(x_), cf::sum(cf::input<double>("x"))); },
          ErrorCode::duplicate_input, "x", {"x"});
  refused([&] { cf::over(cf::whole(), cf::sum(x_ * cf::param<float>("x"))); },
          ErrorCode::duplicate_input, "x", {"x"});
  refused([&] { cf::over(cf::segments(cf::param<std::int64_t>("x")), cf::sum(x_)); },
          ErrorCode::duplicate_input, "x", {"x"});
  refused([] { cf::over(cf::whole(), cf::sum(cf::input<float>(""))); }, ErrorCode::invalid_argument,
          "", {"name"});
  // The same input twice is one input.
  EXPECT_EQ(std::get<0>(compiled(cf::over(cf::whole(), cf::sum(x_ + cf::input<float>("x"))))
                            .run<float>({{"x", data_}})),
            std::vector<float>{48});
}

TEST_F(Errors, TypesOfInputs) {
  const std::vector<double> doubles(24, 1.0);
  refused([&] { sums(4).run_into({{"x", doubles}}, outputs_); }, ErrorCode::type_mismatch, "x",
          {"input 'x' is declared as float but bound to double data",
           "declare cf::input<double>(\"x\")"});
  const std::vector<std::uint32_t> words(24, 1);
  refused([&] { sums(4).launch({.elements = 24, .inputs = {{"x", words}}, .outputs = outputs_}); },
          ErrorCode::type_mismatch, "x", {"declared as float but bound to std::uint32_t data"});
}

TEST_F(Errors, TypesOfOutputs) {
  std::vector<double> doubles(6, 0.5);
  const Outputs wrong{{doubles.data(), doubles.size()}};
  refused([&] { sums(4).run_into({{"x", data_}}, wrong); }, ErrorCode::type_mismatch, "output 0",
          {"output 0 is float but the array given holds double", "cast the output"});
  refused([&] { sums(4).launch({.elements = 24, .inputs = {{"x", data_}}, .outputs = wrong}); },
          ErrorCode::type_mismatch, "output 0", {"output 0 is float"});
  for (double value : doubles) EXPECT_EQ(value, 0.5);
  refused([&] { sums(4).run<double>({{"x", data_}}); }, ErrorCode::type_mismatch, "output 0",
          {"output 0 is float, but run<...> asks for double", "ask for float or cast"});
  refused([&] { sums(4).run<float, float>({{"x", data_}}); }, ErrorCode::type_mismatch, "outputs",
          {"names 2 output types, the expression has 1"});
}

TEST_F(Errors, ParametersThatTheirTypeDoesNotHold) {
  auto y = cf::input<double>("y");
  const std::vector<double> data(4, 1.0);
  const auto check = [&]<class T, class V>(T, V value, bool holds) {
    // A fold that depends on the parameter, whatever its type.
    auto p = cf::param<T>("p");
    const Kernel kernel = compiled(cf::over(cf::whole(), cf::sum(y * cf::cast<double>(p)),
                                            cf::min(cf::select(y > 0, p, p + p))));
    const Bindings bindings{{"y", data}, {"p", value}};
    if (holds) {
      const auto [sum, same] = kernel.template run<double, T>(bindings);
      EXPECT_EQ(same.at(0), static_cast<T>(value));
    } else {
      const std::string type(cpp_name_of(kDType<T>)), given(cpp_name_of(kDType<V>));
      refused([&] { kernel.template run<double, T>(bindings); }, ErrorCode::type_mismatch, "p",
              {"parameter 'p' is " + type + ", which cannot hold the bound " + given,
               "bind a value of " + type, "declare cf::param<" + given + ">(\"p\")"});
    }
  };
  constexpr bool kHolds = true, kNot = false;
  check(std::int32_t{}, std::int64_t{-5}, kHolds);
  check(std::int32_t{}, std::int64_t{1} << 31, kNot);
  check(std::uint32_t{}, -1, kNot);  // wraps there and back again
  check(std::uint32_t{}, 7, kHolds);
  check(std::uint64_t{}, -1, kNot);
  check(std::int64_t{}, std::uint64_t{1} << 63, kNot);
  check(std::int64_t{}, std::uint64_t{5}, kHolds);
  check(std::int64_t{}, 2.0, kHolds);
  check(std::int64_t{}, 2.5, kNot);
  check(std::int64_t{}, std::nan(""), kNot);
  check(std::int64_t{}, 1e30, kNot);
  check(std::int64_t{}, 0x1p63, kNot);  // saturates
  check(float{}, 1.5, kHolds);
  check(float{}, 0.1, kNot);
  check(float{}, 3, kHolds);
  check(float{}, (1 << 24) + 1, kNot);
  check(float{}, std::numeric_limits<std::int32_t>::max(), kNot);
  check(double{}, std::numeric_limits<std::int64_t>::max(), kNot);  // saturates on the way back
  check(double{}, std::numeric_limits<std::uint64_t>::max(), kNot);
  check(double{}, 0.25F, kHolds);
  check(double{}, HUGE_VALF, kHolds);
  // NaN is a value of every float, whatever its sign and payload.
  auto p = cf::param<float>("p");
  const auto [sum] = compiled(cf::over(cf::whole(), cf::sum(x_ * p)))
                         .run<float>({{"x", data_}, {"p", -std::nan("1")}});
  EXPECT_TRUE(std::isnan(sum.at(0)));
}

// --- what is not supported

TEST_F(Errors, OptionsThatAreNotSupported) {
  const Computation fixed = cf::over(cf::segments(4), cf::sum(x_));
  const Computation sized = cf::over(cf::segments(cf::param<std::int64_t>("S")), cf::sum(x_));
  for (const Computation& computation : {fixed, sized}) {
    const auto unsupported = [&](auto change, const char* option, const char* fix) {
      Options options = options_;
      change(options);
      refused([&] { cf::compile(computation, options); }, ErrorCode::unsupported, option,
              {"not supported yet", fix});
    };
    unsupported([](Options& o) { o.accuracy = Accuracy::exact; }, "accuracy", "Accuracy::accurate");
    unsupported([](Options& o) { o.accuracy = Accuracy::reproducible; }, "accuracy",
                "Accuracy::accurate");
    unsupported([](Options& o) { o.determinism = Determinism::gpu_to_gpu; }, "determinism",
                "Determinism::run_to_run");
  }
  Options supported = options_;
  for (const Accuracy accuracy : {Accuracy::fast, Accuracy::as_published}) {
    supported.accuracy = accuracy;
    EXPECT_EQ(std::get<0>(cf::compile(fixed, supported).run<float>({{"x", data_}})),
              std::vector<float>(6, 4.0F));
  }
  supported.accuracy = Accuracy::fast;
  supported.nonfinite = NonFinite::assume_finite;
  supported.determinism = Determinism::not_guaranteed;
  EXPECT_EQ(std::get<0>(cf::compile(fixed, supported).run<float>({{"x", data_}})),
            std::vector<float>(6, 4.0F));
}

TEST_F(Errors, PublishedStrategiesWhereTheyDoNotServe) {
  for (const auto& [plan, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"reduction16 warps=8", "over segments of 16; with"},
           {"strided16n warps=8", "over segments of a multiple of 16; with"},
           {"coalesced16n warps=8", "over segments of a multiple of 16 from 256 on; with"},
           {"reduction256 warps=8", "over segments of 256; with"},
           {"inefficient256n warps=8", "over segments of a multiple of 256; with"},
           {"efficient256n warps=8", "over segments of a multiple of 256; with"},
           {"block256n warps=8", "over segments of a multiple of 256; with"},
           {"grid256n warps=8", "over the whole input; with"},
           {"recurrence warps=8 chain=4", "over the whole input; with"},
           {"single_pass warps=8", "over the whole input; with"},
           {"split warps=8", "over the whole input; with"},
           {"padded warps=8", "over segments of any lengths that cf::offsets tells; with"}}) {
    Options pinned = options_;
    pinned.plan = plan;
    const std::string text(plan);
    const std::string serves =
        text.substr(0, text.find(' ')) + " serves one sum of one cf::f16 input";
    refused([&] { cf::compile(cf::over(cf::segments(4), cf::sum(x_)), pinned); },
            ErrorCode::unsupported, "plan",
            {plan, "not legal for segments of 4", serves.c_str(), words,
             "Accuracy::as_published alone; leave Options::plan empty"});
  }
}

TEST_F(Errors, PaddedSegmentsWhereTheyDoNotServe) {
  const auto half = cf::input<cf::f16>("half");
  const auto told = cf::offsets("offsets");
  Options pinned = options_;
  pinned.plan = "padded warps=8 depth=4 chain=1";
  for (const char* target : {"sm_90", "cpu"}) {
    pinned.target = cf::target(target);
    std::vector<Computation> refused_ones = {
        cf::over(cf::heads(cf::input<bool>("begins")), cf::sum(half)),
        cf::over(told, cf::sum(x_)),
        cf::over(told, cf::sum(half), cf::max(half)),
        cf::over(told, cf::sum(half, cf::where(half == half))),
        cf::over(told, cf::inclusive(cf::sum(half))),
    };
    if (pinned.target->is_cpu()) refused_ones.push_back(cf::over(told, cf::sum(half)));
    for (const Computation& computation : refused_ones) {
      refused([&] { cf::explain(computation, pinned); }, ErrorCode::unsupported, "plan",
              {"not legal for segments that data tell",
               "padded serves one sum of one cf::f16 input", "leave Options::plan empty"});
    }
  }
}

TEST_F(Errors, PinnedPlansSayWhatIsOutOfRange) {
  const auto half = cf::input<cf::f16>("x");
  struct Row {
    const char *target, *plan;
    Computation computation;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"sm_75",
       "staged warps=8 lanes=8 rows=4 stages=2 burst=256 blocks=2 bytes=16 mma",
       cf::over(cf::segments(37), cf::sum(half)),
       {"not legal for segments of 37 on sm_75; staged serves folds", "(sm_80 and later)"}},
      {"sm_75",
       "rows warps=64 depth=1 rows=1 bytes=16 simt",
       cf::over(cf::segments(37), cf::sum(half)),
       {"on sm_75: warps=64 is out of range (1, 2, 4, 8, 16 or 32); rows serves folds"}},
      {"cpu",
       "rows warps=1 depth=1 rows=1 bytes=0 mma",
       cf::over(cf::segments(37), cf::sum(x_)),
       {"on cpu: mma does not serve here, simt does; rows serves", "with mma, on GPUs"}},
      {"sm_90",
       "split warps=8 depth=4 blocks=4 fraction=150 product=0 bytes=16 mma",
       cf::over(cf::whole(), cf::sum(half)),
       {"the whole input on sm_90: fraction=150 is out of range (1 to 99); split serves"}},
      {"sm_90",
       "recurrence warps=2 chain=9 bytes=16 mma",
       cf::over(cf::whole(), cf::sum(half)),
       {"chain=9 is out of range (1 to 8); recurrence serves"}},
  };
  for (const Row& row : rows) {
    const Options pinned{.target = cf::target(row.target), .plan = row.plan};
    std::vector<std::string> words = row.words;
    words.insert(words.end(), {row.plan, "; leave Options::plan empty"});
    refused([&] { cf::explain(row.computation, pinned); }, ErrorCode::unsupported, "plan", words);
  }
}

TEST_F(Errors, Strides) {
  const float* const x = data_.data();
  const auto both = [&](const Kernel& kernel, const Binding& binding, std::int64_t elements,
                        ErrorCode code, const std::vector<std::string>& words) {
    refused([&] { kernel.run_into({binding}, outputs_); }, code, "x", words);
    refused(
        [&] { kernel.launch({.elements = elements, .inputs = {binding}, .outputs = outputs_}); },
        code, "x", words);
  };
  const Kernel columns = compiled(cf::over(cf::columns(4), cf::sum(x_)));
  for (const std::int64_t stride : {1, 3, -1, -8}) {
    const std::string told = "a stride of " + std::to_string(stride);
    both(sums(4), {"x", x, 12, stride}, 12, ErrorCode::invalid_argument,
         {told, "less than the 4 elements of a segment", "0 where there is no gap"});
    both(columns, Binding("x", data_).stride(stride), 24, ErrorCode::invalid_argument,
         {told, "less than the 4 elements of a row"});
  }
  for (const std::int64_t stride : {1, 8, -2}) {
    both(total(), {"x", x, 24, stride}, 24, ErrorCode::invalid_argument,
         {"a stride of " + std::to_string(stride), "whole() is one run of elements", "segments(n)",
          "columns(n)"});
  }
  // Memory that ends before the last row does, and rows beyond every memory.
  const Binding short_one{"x", x, 21, 6};
  refused([&] { sums(4).launch({.elements = 16, .inputs = {short_one}, .outputs = outputs_}); },
          ErrorCode::length_mismatch, "x",
          {"has 21 elements", "asks for 16 in rows 6 apart, which reach over 22"});
  refused([&] { columns.launch({.elements = 16, .inputs = {short_one}, .outputs = outputs_}); },
          ErrorCode::length_mismatch, "x", {"which reach over 22"});
  refused([&] { sums(4).run_into({short_one}, outputs_); }, ErrorCode::not_a_multiple, "x",
          {"15 elements", "3 segments and 3 elements over"});
  refused([&] { columns.run_into({short_one}, outputs_); }, ErrorCode::not_a_multiple, "x",
          {"15 elements are no multiple of the 4 columns", "3 rows and 3 elements over"});
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 4;
  for (const std::int64_t stride : {huge, 4 * huge}) {
    refused(
        [&] {
          sums(4).launch({.elements = 24, .inputs = {{"x", x, -1, stride}}, .outputs = outputs_});
        },
        ErrorCode::invalid_argument, "x",
        {"6 rows with a stride of " + std::to_string(stride), "beyond 2^63 bytes"});
  }
  // Each input has its own; what they hold without gaps must agree.
  const Kernel two = compiled(cf::over(cf::segments(4), cf::sum(x_ + cf::input<float>("y"))));
  refused([&] { two.run_into({{"x", x, 24}, {"y", x, 24, 8}}, outputs_); },
          ErrorCode::length_mismatch, "y", {"'y' has 12 elements but 'x' has 24"});
}

TEST_F(Errors, StridesThatAreNone) {
  std::iota(data_.begin(), data_.end(), 0.0F);
  EXPECT_EQ(std::get<0>(sums(4).run<float>({Binding("x", data_).stride(4)})),
            std::get<0>(sums(4).run<float>({{"x", data_}})));
  EXPECT_EQ(std::get<0>(total().run<float>({Binding("x", data_).stride(0)})),
            std::vector<float>{276});
  EXPECT_EQ(std::get<0>(sums(24).run<float>({Binding("x", data_).stride(1000)})),
            std::vector<float>{276});
}

TEST_F(Errors, Columns) {
  refused([] { cf::columns(0); }, ErrorCode::invalid_argument, "",
          {"number of columns is 0", "at least 1"});
  refused([] { cf::columns(-3); }, ErrorCode::invalid_argument, "", {"is -3", "at least 1"});
  refused([] { cf::columns(~0ULL); }, ErrorCode::invalid_argument, "", {"below 2^63"});
  const Kernel sized = compiled(cf::over(cf::columns(cf::param<std::int64_t>("C")), cf::sum(x_)));
  refused([&] { sized.run_into({{"x", data_}, {"C", 0}}, outputs_); }, ErrorCode::invalid_argument,
          "C", {"number of columns 'C' is 0", "at least 1"});
  refused([&] { sized.run_into({{"x", data_}, {"C", 5}}, outputs_); }, ErrorCode::not_a_multiple,
          "x", {"24 elements are no multiple of the 5 columns", "4 rows and 4 elements over"});
  refused([&] { sized.run_into({{"x", data_}}, outputs_); }, ErrorCode::missing_input, "C",
          {"parameter 'C'"});
  const Outputs five{{out_.data(), 5}};
  refused([&] { sized.run_into({{"x", data_}, {"C", 6}}, five); }, ErrorCode::too_small, "output 0",
          {"room for 5 values, 6 are needed"});
  refused(
      [&] { sized.launch({.elements = 24, .inputs = {{"x", data_}, {"C", 6}}, .outputs = five}); },
      ErrorCode::too_small, "output 0", {"room for 5 values, 6 are needed"});
  refused(
      [&] {
        cf::explain(cf::over(cf::columns(cf::param<std::int64_t>("C")), cf::sum(x_)),
                    cf::target("sm_90"), 0);
      },
      ErrorCode::invalid_argument, "segment", {"a number of columns of 0", "at least 1"});
  Options pinned = options_;
  pinned.plan = "rows warps=1 depth=8 rows=4 bytes=0 simt";
  refused([&] { cf::compile(cf::over(cf::columns(4), cf::sum(x_)), pinned); },
          ErrorCode::unsupported, "plan", {"not legal for 4 columns"});
  pinned.plan = "columns warps=1 depth=8 runs=1 parts=4 bytes=0 simt";
  refused([&] { cf::compile(cf::over(cf::segments(4), cf::sum(x_)), pinned); },
          ErrorCode::unsupported, "plan", {"not legal for segments of 4"});
}

TEST_F(Errors, MoreThanALaunchHolds) {
  std::vector<std::string> names;
  for (int i = 0; i < 33; ++i) names.push_back("x" + std::to_string(i));
  Bindings bindings;
  for (int i = 0; i < 32; ++i) bindings.push_back({names[static_cast<std::size_t>(i)], data_});
  refused([&] { bindings.push_back({names[32], data_}); }, ErrorCode::invalid_argument, "",
          {"at most 32"});
  auto sum_of = [&](int inputs) {
    auto all = cf::let(0 * cf::input<float>(names[0]));
    for (int i = 0; i < inputs; ++i)
      all = cf::let(all + cf::input<float>(names[static_cast<std::size_t>(i)]));
    return cf::over(cf::segments(4), cf::sum(all));
  };
  EXPECT_EQ(std::get<0>(compiled(sum_of(32)).run<float>(bindings)), std::vector<float>(6, 128.0F));
  refused([&] { static_cast<void>(compiled(sum_of(33))); }, ErrorCode::unsupported, "",
          {"33 inputs and parameters", "split it over several kernels"});

  auto polynomial = [&](int literals) {  // each coefficient is an argument of the kernel
    auto p = cf::let(x_ * 0.0F);
    for (int i = 0; i < literals; ++i) p = cf::let(p * x_ + (static_cast<float>(i) + 0.5F));
    return cf::over(cf::segments(4), cf::sum(p));
  };
  EXPECT_EQ(std::get<0>(compiled(polynomial(200)).run<float>({{"x", data_}})),
            std::vector<float>(6, 80000.0F));  // 4 (0.5 + 1.5 + ... + 199.5)
  refused([&] { static_cast<void>(compiled(polynomial(600))); }, ErrorCode::unsupported, "",
          {"literals", "a kernel at most 512", "split its outputs"});
  options_.tuning = Tuning::measure;
  refused([&] { static_cast<void>(compiled(polynomial(601))); }, ErrorCode::unsupported, "",
          {"literals", "a kernel at most 512", "split its outputs"});
}

TEST_F(Errors, Targets) {
  refused([] { cf::target("abacus"); }, ErrorCode::invalid_argument, "", {"abacus", "cpu, sm_75"});
  refused([] { cf::target("gpu:one"); }, ErrorCode::invalid_argument, "", {"gpu:one"});
  refused([] { cf::target("sm_60"); }, ErrorCode::unsupported, "", {"sm_60", "sm_75"});
  EXPECT_THROW(cf::target("gpu:4711"), DeviceError);
  // An architecture to look at, not to run on: no device is old enough for this one's tests.
  Options elsewhere;
  elsewhere.target = cf::target("sm_75");
  elsewhere.target->name = "sm_74";
  elsewhere.target->arch = 74;
  expect_error<DeviceError>([&] { cf::compile(cf::over(cf::whole(), cf::sum(x_)), elsewhere); },
                            ErrorCode::device_failed, "target",
                            {"sm_74", "target(\"gpu\")", "explain()"});
}

}  // namespace
}  // namespace chainfold::test
