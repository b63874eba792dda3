// Bindings that outlive what they were made of, values of every type, sizes that no memory has, and
// the names of types in what is said of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/type_names.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/tests/support/cpu_test.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

class BindingsOfRuns : public CpuTest {
 protected:
  dsl::Input<DType::f32> x_ = cf::input<float>("x");
  std::vector<float> data_ = std::vector<float>(24, 1.0F);
};

// --- lifetimes

TEST_F(BindingsOfRuns, TheNameOfADeadStringIsKept) {
  const auto make = [&](const char* first, const char* second) {
    return Bindings{{std::string(first) + second, data_}};
  };
  // Longer than what std::string keeps in place, so that a view of it would be of freed memory.
  const Bindings bindings = make("an_input_of_some_", "twenty_characters");
  const std::string fill(34, '#');  // takes the freed memory
  EXPECT_EQ(bindings[0].name(), "an_input_of_some_twenty_characters");
  const Bindings copy = bindings;
  EXPECT_EQ(copy[0].name(), "an_input_of_some_twenty_characters");
  expect_error<UserError>(
      [&] { compiled(cf::over(cf::whole(), cf::sum(x_))).run<float>(bindings); },
      ErrorCode::unknown_input, "an_input_of_some_twenty_characters",
      {"no input or parameter 'an_input_of_some_twenty_characters'"});
}

TEST_F(BindingsOfRuns, ALongNameOfATemporaryIsRefusedAndOthersAreNot) {
  const std::string name(100, 'n');
  const Kernel kernel = compiled(cf::over(cf::whole(), cf::sum(cf::input<float>(name))));
  const Bindings lasting{{name, data_}};
  EXPECT_EQ(std::get<0>(kernel.run<float>(lasting)), std::vector<float>{24});
  // Within the braces of a call temporaries live long enough.
  EXPECT_EQ(std::get<0>(kernel.run<float>({{std::string(100, 'n'), data_}})),
            std::vector<float>{24});
  expect_error<UserError>([&] { const Bindings bindings{{std::string(41, 'n'), data_}}; },
                          ErrorCode::invalid_argument, std::string(41, 'n'),
                          {"temporary string of more than 40 characters", "variable"});
  EXPECT_EQ(Binding(std::string(40, 'n'), data_).name(), std::string(40, 'n'));
}

TEST_F(BindingsOfRuns, ATemporaryArrayInTheBracesOfACallIsRead) {
  const Kernel kernel = compiled(cf::over(cf::segments(4), cf::sum(x_)));
  const auto make = [] { return std::vector<float>(8, 3.0F); };
  EXPECT_EQ(std::get<0>(kernel.run<float>({{"x", make()}})), (std::vector<float>{12, 12}));
  EXPECT_EQ(kernel.output_count({{"x", make()}}), 2);
  std::vector<float> out(2);
  kernel.run_into({{"x", make()}}, {{out.data(), out.size()}});
  EXPECT_EQ(out, (std::vector<float>{12, 12}));
  const std::vector<float> gaps{1, 1, 1, 1, 9, 2, 2, 2, 2, 9};
  EXPECT_EQ(std::get<0>(kernel.run<float>({cf::Binding("x", gaps).stride(5)})),
            (std::vector<float>{4, 8}));
}

// --- parameters

TEST_F(BindingsOfRuns, ParametersOfHalvesTakeHalves) {
  const auto check = [&](auto scale, float expected) {
    using T = decltype(scale);
    const Kernel kernel = compiled(cf::over(cf::segments(4), cf::sum(x_ * cf::param<T>("scale"))));
    EXPECT_EQ(std::get<0>(kernel.run<float>({{"x", data_}, {"scale", scale}})),
              std::vector<float>(6, expected));
    // A number that the type holds is taken as well, and one that it does not is refused.
    EXPECT_EQ(std::get<0>(kernel.run<float>({{"x", data_}, {"scale", 0.25F}})),
              std::vector<float>(6, 1));
    expect_error<UserError>([&] { kernel.run<float>({{"x", data_}, {"scale", 0.1F}}); },
                            ErrorCode::type_mismatch, "scale",
                            {cf::kDType<T> == DType::f16 ? "is cf::f16" : "is cf::bf16",
                             "the bound float value 0.1", "cf::param<float>"});
  };
  check(cf::f16(1.5F), 6);
  check(cf::bf16(-2.5F), -10);
  const Kernel wide = compiled(cf::over(cf::whole(), cf::sum(x_ * cf::param<float>("scale"))));
  EXPECT_EQ(std::get<0>(wide.run<float>({{"x", data_}, {"scale", cf::f16(0.5F)}})),
            std::vector<float>{12});
}

// --- sizes

TEST_F(BindingsOfRuns, OutputsThatNoMemoryHoldsAreTypedErrors) {
#ifdef CHAINFOLD_TEST_SANITIZED
  GTEST_SKIP() << "sanitizers end the process where an allocation is too large";
#endif
  // 2^40 elements of which nothing is read: the outputs are made first.
  const Kernel kernel = compiled(cf::over(cf::segments(1), cf::count(), cf::sum(x_)));
  for (const std::int64_t elements : {std::int64_t{1} << 46, std::int64_t{1} << 60}) {
    try {
      kernel.run<std::int64_t, float>({{"x", data_.data(), elements}});
      FAIL() << "no error was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
      EXPECT_EQ(error.input(), "output 0");
      for (const char* const word : {"values of 8 bytes", "fewer elements", "run_into"})
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(std::to_string(elements)), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(BindingsOfRuns, CountsBeyondTheAddressSpaceAreRefused) {
  const Kernel kernel = compiled(cf::over(cf::whole(), cf::sum(x_)));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  expect_error<UserError>([&] { kernel.run<float>({{"x", data_.data(), kMost}}); },
                          ErrorCode::invalid_argument, "x",
                          {std::to_string(kMost) + " elements of float", "2^63 bytes"});
  expect_error<UserError>([&] { (void)kernel.scratch_bytes({.elements = kMost / 2}); },
                          ErrorCode::invalid_argument, "x", {"2^63 bytes"});
}

TEST_F(BindingsOfRuns, StridesBeyondTheAddressSpaceAreRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Kernel segments = compiled(cf::over(cf::segments(4), cf::sum(x_)));
  const Kernel columns = compiled(cf::over(cf::columns(4), cf::sum(x_)));
  std::vector<float> out(8, -1);
  for (const Kernel& kernel : {segments, columns}) {
    for (const std::int64_t stride : {kMost, kMost / 2, kMost / 4 + 1}) {
      const Binding binding = cf::Binding("x", data_).stride(stride);
      const std::vector<std::string> words{"stride of " + std::to_string(stride),
                                           "beyond 2^63 bytes"};
      expect_error<UserError>([&] { kernel.run<float>({binding}); }, ErrorCode::invalid_argument,
                              "x", words);
      expect_error<UserError>([&] { kernel.run_into({binding}, {{out.data(), out.size()}}); },
                              ErrorCode::invalid_argument, "x", words);
      expect_error<UserError>(
          [&] {
            kernel.launch(
                {.elements = 4, .inputs = {binding}, .outputs = {{out.data(), out.size()}}});
          },
          ErrorCode::invalid_argument, "x", words);
      expect_error<UserError>([&] { (void)kernel.output_count({binding}); },
                              ErrorCode::invalid_argument, "x", words);
    }
  }
  EXPECT_EQ(out, std::vector<float>(8, -1));
  // One row of a stride that can be counted is one row.
  EXPECT_EQ(std::get<0>(segments.run<float>({cf::Binding("x", data_).stride(kMost / 4)})),
            std::vector<float>{4});
}

// --- words

TEST_F(BindingsOfRuns, TypesHaveTheNamesOfCpp) {
  EXPECT_EQ(cpp_name_of(DType::boolean), "bool");
  EXPECT_EQ(cpp_name_of(DType::i8), "std::int8_t");
  EXPECT_EQ(cpp_name_of(DType::u64), "std::uint64_t");
  EXPECT_EQ(cpp_name_of(DType::f16), "cf::f16");
  EXPECT_EQ(cpp_name_of(DType::bf16), "cf::bf16");
  EXPECT_EQ(cpp_name_of(DType::f32), "float");
  EXPECT_EQ(cpp_name_of(DType::f64), "double");
  const auto n = cf::input<std::int32_t>("n");
  const Kernel kernel = compiled(cf::over(cf::whole(), cf::sum(n)));
  const std::vector<std::int32_t> numbers(8, 1);
  expect_error<UserError>(
      [&] { kernel.run<std::int32_t>({{"n", numbers}}); }, ErrorCode::type_mismatch, "output 0",
      {"output 0 is std::int64_t, but run<...> asks for std::int32_t", "ask for std::int64_t"});
}

TEST_F(BindingsOfRuns, ADeviceOfOneThreadHasOneThread) {
  chainfold_cpu_plugin made_up = runtime::cpu_plugin();
  made_up.host_cpu = "znver4";
  made_up.vector_bits = 512;
  made_up.threads = 1;
  EXPECT_EQ(runtime::cpu_text(made_up), "CPU znver4, 1 thread, 512-bit vectors");
  made_up.threads = 16;
  EXPECT_EQ(runtime::cpu_text(made_up), "CPU znver4, 16 threads, 512-bit vectors");
  EXPECT_EQ(compiled(cf::over(cf::whole(), cf::sum(x_))).device_name(),
            runtime::cpu_text(runtime::cpu_plugin()));
}

}  // namespace
}  // namespace chainfold::test
