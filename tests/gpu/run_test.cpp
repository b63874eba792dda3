// run() on the GPU: typed results, tails, empty input, and data that goes through in chunks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <span>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

class GpuRun : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// For the default target, which is the GPU where there is one.
  static Kernel compiled(const Computation& computation) { return cf::compile(computation); }
};

TEST_F(GpuRun, IsTheDefaultAndGivesTypedVectors) {
  auto x = cf::input<cf::f16>("x");
  const Kernel kernel = compiled(cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x)),
                                          cf::count(cf::where(x > 0)), cf::any(x < 0)));
  EXPECT_EQ(kernel.target().backend, codegen::Backend::cuda);
  EXPECT_EQ(kernel.device_name(), runtime::device_info(0).name);
  std::vector<cf::f16> data(640);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = cf::f16(i % 2 == 0 ? 3.0F : -1.0F);
  const auto [mean, rms, above, below] =
      kernel.run<float, float, std::int64_t, bool>({{"x", data}});
  EXPECT_EQ(mean, std::vector<float>(10, 1.0F));
  EXPECT_EQ(rms, std::vector<float>(10, std::sqrt(5.0F)));
  EXPECT_EQ(above, std::vector<std::int64_t>(10, 32));
  EXPECT_EQ(below, std::vector<std::uint8_t>(10, 1));
  EXPECT_GE(kernel.stats().compiled + kernel.stats().reused, 1);
}

TEST_F(GpuRun, NoElements) {
  auto x = cf::input<float>("x");
  const std::vector<float> none;
  EXPECT_TRUE(std::get<0>(compiled(cf::over(cf::segments(4), cf::sum(x))).run<float>({{"x", none}}))
                  .empty());
  const auto [sum, mean, least, count] =
      compiled(cf::over(cf::whole(), cf::sum(x), cf::mean(x), cf::min(x), cf::count()))
          .run<float, float, float, std::int64_t>({{"x", none}});
  EXPECT_EQ(sum, std::vector<float>{0});
  EXPECT_TRUE(std::isnan(mean.at(0)));
  EXPECT_EQ(least, std::vector<float>{HUGE_VALF});
  EXPECT_EQ(count, std::vector<std::int64_t>{0});
}

TEST_F(GpuRun, TailsAndSizesKnownAtTheCall) {
  auto x = cf::input<std::int32_t>("x");
  const Kernel kernel = compiled(cf::over(cf::segments(cf::param<std::int64_t>("S"), Tail::partial),
                                          cf::sum(x), cf::max(x), cf::count()));
  std::vector<std::int32_t> data(1003);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int32_t>(i);
  for (const std::int64_t size : {1, 2, 10, 64, 333, 1003, 5000}) {
    const auto [sum, most, count] =
        kernel.run<std::int64_t, std::int32_t, std::int64_t>({{"x", data}, {"S", size}});
    ASSERT_EQ(sum.size(), static_cast<std::size_t>((1003 + size - 1) / size));
    for (std::size_t s = 0; s < sum.size(); ++s) {
      const std::int64_t begin = static_cast<std::int64_t>(s) * size,
                         end = std::min<std::int64_t>(1003, begin + size);
      EXPECT_EQ(sum[s], (begin + end - 1) * (end - begin) / 2) << size;
      EXPECT_EQ(most[s], end - 1) << size;
      EXPECT_EQ(count[s], end - begin) << size;
    }
  }
}

/// 400 MB of f32 in seven chunks, whose every segment has a sum of its own.
class GpuChunks : public GpuRun {
 protected:
  static constexpr std::int64_t kCount = 100'000'000;
  static float value(std::int64_t i) { return static_cast<float>((i * 5 + (i >> 20)) & 127) - 60; }
  static const std::vector<float>& data() {
    static const std::vector<float> kData = [] {
      std::vector<float> values(kCount);
      for (std::int64_t i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = value(i);
      return values;
    }();
    return kData;
  }
  /// The same computation in one launch over device memory.
  template <class Out>
  static std::vector<Out> launched(const Kernel& kernel, std::int64_t values) {
    const runtime::Context& context = runtime::Context::of(0);
    const runtime::ContextScope scope(context);
    const runtime::Stream stream(context);
    const DeviceArray input(context, data().size() * sizeof(float));
    input.upload(data().data());
    const DeviceArray output(context, static_cast<std::size_t>(values) * sizeof(Out));
    const auto bytes = kernel.scratch_bytes({.elements = kCount});
    const DeviceArray scratch(context, static_cast<std::size_t>(bytes));
    kernel.launch({.elements = kCount,
                   .inputs = {{"x", static_cast<const float*>(input.data())}},
                   .outputs = {{static_cast<Out*>(output.data()), values}},
                   .stream = stream.handle(),
                   .scratch = {scratch.data(), bytes}});
    stream.synchronize();
    std::vector<Out> results(static_cast<std::size_t>(values));
    output.download(results.data());
    EXPECT_EQ(output.damage(), "");
    return results;
  }
};

TEST_F(GpuChunks, RowsThatNeedSeveral) {
  const Kernel kernel = compiled(cf::over(cf::segments(64), cf::sum(cf::input<float>("x"))));
  const auto [sums] = kernel.run<float>({{"x", data()}});
  ASSERT_EQ(sums.size(), static_cast<std::size_t>(kCount / 64));
  for (std::int64_t s = 0; s < kCount / 64; ++s) {
    double exact = 0;  // whole numbers: every order of summation is exact
    for (std::int64_t i = 0; i < 64; ++i) exact += data()[static_cast<std::size_t>(s * 64 + i)];
    ASSERT_EQ(sums[static_cast<std::size_t>(s)], exact) << "segment " << s;
  }
  EXPECT_EQ(sums, launched<float>(kernel, kCount / 64));
}

TEST_F(GpuChunks, PartsThatNeedSeveral) {
  double exact = 0, sum_abs = 0;
  for (float v : data()) {
    exact += v;
    sum_abs += std::fabs(v);
  }
  auto x = cf::input<float>("x");
  const Kernel kernel = compiled(cf::over(cf::whole(), cf::sum(x)));
  const auto [sum] = kernel.run<float>({{"x", data()}});
  const codegen::Plan plan =
      codegen::choose_plan(cf::over(cf::whole(), cf::sum(x)).graph(), kernel.target(), {});
  EXPECT_LE(std::fabs(sum.at(0) - exact), (plan.folds[0].error_bound_u + 1) * 0x1p-24 * sum_abs);
  // Chunks follow from the size alone and parts keep their bounds: the bits are those of one
  // launch.
  EXPECT_EQ(sum, launched<float>(kernel, 1));
  const auto [again] = kernel.run<float>({{"x", data()}});
  EXPECT_EQ(sum, again);
}

/// Chunks begin at any bit of a bitmap: of segments, of parts of the whole, of scans and columns.
class GpuBitmapChunks : public GpuRun, public testing::WithParamInterface<std::int64_t> {
 protected:
  static constexpr std::int64_t kElements = 30'000'019;
  [[nodiscard]] std::int64_t first() const { return GetParam(); }
  [[nodiscard]] bool is_valid(std::int64_t i) const {
    return (bitmap_[static_cast<std::size_t>((first() + i) / 8)] >> ((first() + i) % 8) & 1) != 0;
  }
  [[nodiscard]] std::int64_t count(std::int64_t begin, std::int64_t end,
                                   std::int64_t step = 1) const {
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; i += step) count += is_valid(i) ? 1 : 0;
    return count;
  }
  [[nodiscard]] Bindings bindings(std::int64_t elements) const {
    return {Binding("x", x_.data(), elements),
            Binding("valid", cf::bits(bitmap_, elements, first()))};
  }
  void SetUp() override {
    GpuRun::SetUp();
    if (IsSkipped()) return;
    x_.assign(kElements, 1.0F);
    bitmap_.resize(kElements / 8 + 9);
    std::uint64_t state = 88172645463325252u;
    for (std::uint8_t& byte : bitmap_) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      byte = static_cast<std::uint8_t>(state >> 32);
    }
  }
  std::vector<float> x_;
  std::vector<std::uint8_t> bitmap_;
};

TEST_P(GpuBitmapChunks, GiveWhatALoopGives) {
  constexpr std::int64_t kSegment = 1003, kColumns = 24;
  const auto x = cf::input<float>("x");
  const auto valid = cf::where(cf::input<bool>("valid", cf::as_bits));
  const auto kernel = cf::compile(
      cf::over(cf::segments(kSegment, Tail::partial), cf::sum(x, valid), cf::count(valid)));
  const auto [sums, counts] = kernel.run(bindings(kElements));
  ASSERT_EQ(std::ssize(counts), kElements / kSegment + 1);
  for (std::int64_t s = 0; s < std::ssize(counts); ++s) {
    const std::int64_t expected = count(s * kSegment, std::min(kElements, (s + 1) * kSegment));
    ASSERT_EQ(counts[static_cast<std::size_t>(s)], expected) << s;
    ASSERT_EQ(sums[static_cast<std::size_t>(s)], static_cast<float>(expected)) << s;
  }
  const auto whole = cf::compile(cf::over(cf::whole(), cf::count(valid), cf::sum(x)));
  EXPECT_EQ(std::get<0>(whole.run(bindings(kElements)))[0], count(0, kElements));

  const auto ranks = cf::compile(cf::over(cf::segments(kSegment, Tail::partial),
                                          cf::exclusive(cf::count(valid)), cf::inclusive_sum(x)));
  const auto rank = std::get<0>(ranks.run(bindings(kElements)));
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < kElements; ++i) {
    if (i % kSegment == 0) expected = 0;
    ASSERT_EQ(rank[static_cast<std::size_t>(i)], expected) << i;
    expected += is_valid(i) ? 1 : 0;
  }
  // Beside an input with gaps between its rows.
  constexpr std::int64_t kRows = 900'000, kStride = 32;
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t gap = kColumns; gap < kStride; ++gap)
      x_[static_cast<std::size_t>(row * kStride + gap)] = 1e30F;
  const auto columns = cf::compile(cf::over(cf::columns(kColumns), cf::sum(x, valid)));
  const auto column_sums = std::get<0>(
      columns.run({cf::Binding("x", std::span(x_.data(), kRows * kStride)).stride(kStride),
                   cf::Binding("valid", cf::bits(bitmap_, kRows * kColumns, first()))}));
  for (std::int64_t c = 0; c < kColumns; ++c)
    EXPECT_EQ(column_sums[static_cast<std::size_t>(c)],
              static_cast<float>(count(c, kRows * kColumns, kColumns)))
        << c;
}
INSTANTIATE_TEST_SUITE_P(FirstBits, GpuBitmapChunks, testing::Values(0, 3, 7));

TEST_F(GpuChunks, LongSegmentsThatChunksCut) {
  constexpr std::int64_t kLength = 30'000'001;  // three of them and a tail; none ends with a chunk
  auto x = cf::input<float>("x");
  const Kernel kernel =
      compiled(cf::over(cf::segments(kLength, Tail::partial), cf::sum(cf::cast<std::int64_t>(x)),
                        cf::count(cf::where(x > 0)), cf::min(x)));
  const auto [sums, positive, least] =
      kernel.run<std::int64_t, std::int64_t, float>({{"x", data()}});
  ASSERT_EQ(sums.size(), 4u);
  for (std::size_t s = 0; s < 4; ++s) {
    const auto begin = static_cast<std::int64_t>(s) * kLength,
               end = std::min(kCount, begin + kLength);
    std::int64_t exact = 0, above = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const float v = data()[static_cast<std::size_t>(i)];
      exact += static_cast<std::int64_t>(v);
      above += v > 0;
    }
    EXPECT_EQ(sums[s], exact) << s;
    EXPECT_EQ(positive[s], above) << s;
    EXPECT_EQ(least[s], -60) << s;
  }
}

/// Inputs of different widths and a filter; beyond 2^31 elements as well.
TEST_F(GpuRun, MoreThanTwoToThe31Elements) {
  const UntouchedPages bytes((std::size_t{1} << 31) + 8192);  // pages that take no memory
  bytes.data()[bytes.bytes() - 5] = 200;
  bytes.data()[123] = 7;
  auto b = cf::input<std::uint8_t>("b");
  const Bindings bindings{{"b", bytes.data(), bytes.bytes()}};
  const auto [sum, count] = compiled(cf::over(cf::whole(), cf::sum(b), cf::count(cf::where(b > 0))))
                                .run<std::uint64_t, std::int64_t>(bindings);
  EXPECT_EQ(sum, std::vector<std::uint64_t>{207});
  EXPECT_EQ(count, std::vector<std::int64_t>{2});
  const auto [rows] =
      compiled(cf::over(cf::segments(8192), cf::max(b))).run<std::uint8_t>(bindings);
  ASSERT_EQ(rows.size(), (std::size_t{1} << 18) + 1);
  EXPECT_EQ(rows.front(), 7);
  EXPECT_EQ(rows.back(), 200);
  EXPECT_EQ(rows[1], 0);
}

TEST_F(GpuRun, ColumnsOfDifferentWidthsInChunks) {
  constexpr std::int64_t kCount = 12'000'000;  // 204 MB together
  std::vector<std::int8_t> a(kCount);
  std::vector<double> b(kCount);
  std::vector<std::int64_t> c(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<std::int8_t>(i % 201) - 100;
    b[i] = static_cast<double>(i % 1024);
    c[i] = static_cast<std::int64_t>(i) << 20;
  }
  auto x = cf::input<std::int8_t>("a");
  auto y = cf::input<double>("b");
  auto z = cf::input<std::int64_t>("c");
  const Bindings bindings{{"a", a}, {"b", b}, {"c", c}};
  for (const std::int64_t size : {std::int64_t{1000}, std::int64_t{0}}) {
    const Kernel kernel =
        compiled(cf::over(size > 0 ? cf::segments(size) : cf::whole(), cf::sum(z, cf::where(x > 0)),
                          cf::sum(y), cf::dot(x, x)));
    const auto [filtered, whole, squares] =
        kernel.run<std::int64_t, double, std::int64_t>(bindings);
    const std::int64_t length = size > 0 ? size : kCount;
    ASSERT_EQ(whole.size(), static_cast<std::size_t>(kCount / length));
    for (std::size_t s = 0; s < whole.size(); ++s) {
      std::int64_t exact = 0, square = 0;
      double sum = 0;
      for (auto i = s * static_cast<std::size_t>(length);
           i < (s + 1) * static_cast<std::size_t>(length); ++i) {
        exact += a[i] > 0 ? c[i] : 0;
        sum += b[i];
        square += a[i] * a[i];
      }
      ASSERT_EQ(filtered[s], exact) << s;
      ASSERT_EQ(whole[s], sum) << s;  // whole numbers below 2^53
      ASSERT_EQ(squares[s], square) << s;
    }
  }
}

TEST_F(GpuRun, ErrorsLeaveTheOutputsAlone) {
  auto x = cf::input<float>("x");
  const Kernel kernel = compiled(cf::over(cf::segments(5), cf::sum(x)));
  const std::vector<float> data(24, 1.0F);
  std::vector<float> out(5, -7);
  expect_error<UserError>([&] { kernel.run_into({{"x", data}}, {{out.data(), out.size()}}); },
                          ErrorCode::not_a_multiple, "x", {"tail"});
  expect_error<UserError>([&] { kernel.run_into({{"x", data.data(), 20}}, {{out.data(), 3}}); },
                          ErrorCode::too_small, "output 0", {"4 are needed"});
  EXPECT_EQ(out, std::vector<float>(5, -7));
  kernel.run_into({{"x", data.data(), 20}}, {{out.data(), 4}});
  EXPECT_EQ(out, (std::vector<float>{5, 5, 5, 5, -7}));
}

}  // namespace
}  // namespace chainfold::test
