#include "chainfold/tests/support/programs.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace chainfold::test {

namespace {

namespace cf = chainfold;
using P = dsl::Partition;
using Programs = std::vector<TestProgram>;

const std::vector<Fill> kFloatFills{Fill::uniform,     Fill::normal,    Fill::whole,
                                    Fill::adversarial, Fill::subnormal, Fill::nonfinite};
const std::vector<Fill> kIntegerFills{Fill::uniform, Fill::extremes};

template <class T>
constexpr bool kFloat = is_float(kDType<T>);

template <class T>
const std::vector<Fill>& fills() {
  return kFloat<T> ? kFloatFills : kIntegerFills;
}

template <class T>
ParamValue value_of(std::string name, T value) {
  return {std::move(name), kDType<T>, codegen::bits_of(value)};
}

/// The folds of one element type.
template <class T>
void add_folds(Programs& list) {
  const std::string type(name_of(kDType<T>));
  auto add = [&](const char* name, auto over) {
    list.push_back({.name = fmt::format("{}_{}", name, type), .over = over, .fills = fills<T>()});
  };
  add("sum", [](const P& p) { return cf::over(p, cf::sum(cf::input<T>("x"))); });
  add("basics", [](const P& p) {
    auto x = cf::input<T>("x");
    return cf::over(p, cf::mean(x), cf::min(x), cf::max(x), cf::count());
  });
  add("variance", [](const P& p) { return cf::over(p, cf::variance(cf::input<T>("x"))); });
  add("dot", [](const P& p) { return cf::over(p, cf::dot(cf::input<T>("x"), cf::input<T>("y"))); });
  add("norm", [](const P& p) { return cf::over(p, cf::norm(cf::input<T>("x"))); });
}

/// Arithmetic, comparisons and bits in one element type.
template <class T>
void add_integer_ops(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "arithmetic_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        return cf::over(p, cf::sum(x + y), cf::sum(x - y), cf::max(x * y),
                                        cf::sum(x / y), cf::sum(x % y), cf::min(-x),
                                        cf::sum(cf::abs(x)), cf::sum(cf::fma(x, y, x)));
                      },
                  .fills = kIntegerFills});
  list.push_back({.name = "bits_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        return cf::over(p, cf::sum(x & y), cf::max(x | y), cf::sum(x ^ y),
                                        cf::min(~x), cf::sum(x << 3), cf::sum(x >> 2),
                                        cf::max(x << y));
                      },
                  .fills = kIntegerFills});
  list.push_back({.name = "compare_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        return cf::over(p, cf::count(cf::where(x < y)),
                                        cf::count(cf::where(x <= y)), cf::any(x == y),
                                        cf::all(x != y), cf::sum(x > y),
                                        cf::sum(cf::select(x >= y, x, y)), cf::max(cf::min(x, y)),
                                        cf::min(cf::max(x, y)));
                      },
                  .fills = kIntegerFills});
}

template <class T>
void add_float_ops(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "arithmetic_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        return cf::over(p, cf::sum(x + y), cf::sum(x - y), cf::max(x * y),
                                        cf::max(x / (cf::abs(y) + 1)), cf::sum(x % y), cf::min(-x),
                                        cf::sum(cf::fma(x, y, x)), cf::sum(cf::sqrt(cf::abs(x))),
                                        cf::sum(cf::floor(x * 8)));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "compare_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        return cf::over(p, cf::count(cf::where(x < y)), cf::any(x == y),
                                        cf::all(x != y), cf::sum(x > y),
                                        cf::sum(cf::select(x >= y, x, y)), cf::max(cf::min(x, y)),
                                        cf::min(cf::max(x, y)), cf::count(cf::where(!(x <= y))));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "transcendental_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x");
                        auto a = cf::abs(x) + 1;
                        return cf::over(p, cf::sum(cf::exp(x)), cf::min(cf::log(a)),
                                        cf::mean(cf::pow(a, 2.5F)), cf::log(cf::sum(a)),
                                        cf::exp(cf::max(x)));
                      },
                  .transcendental = true,
                  .fills = {Fill::uniform, Fill::normal, Fill::whole}});
}

void add_filters(Programs& list) {
  list.push_back({.name = "filter_f16",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<f16>("x");
                        auto hit = cf::where(x > 0.25F);
                        return cf::over(p, cf::sum(x, hit), cf::mean(x, hit), cf::min(x, hit),
                                        cf::max(x, hit), cf::count(hit), cf::variance(x, hit));
                      },
                  .fills = {Fill::uniform, Fill::nonfinite}});
  list.push_back({.name = "filter_none_i16", .over = [](const P& p) {
                    auto x = cf::input<std::int16_t>("x");
                    auto none = cf::where(x != x);
                    return cf::over(p, cf::sum(x, none), cf::mean(x, none), cf::min(x, none),
                                    cf::max(x, none), cf::count(none), cf::variance(x, none),
                                    cf::any(x == x, none), cf::all(x != x, none),
                                    cf::dot(x, x, none), cf::norm(x, none));
                  }});
  list.push_back({.name = "filter_uniform_f32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        auto limit = cf::param<float>("limit");
                        auto on = cf::where(limit > 1.0F);
                        return cf::over(p, cf::sum(x, on), cf::count(on), cf::max(x, on),
                                        cf::sum(x, cf::where(x < limit)));
                      },
                  .params = {value_of("limit", 0.5F)}});
  list.push_back({.name = "flags_bool", .over = [](const P& p) {
                    auto a = cf::input<bool>("a"), b = cf::input<bool>("b");
                    return cf::over(p, cf::any(a && b), cf::all(a || b), cf::sum(a ^ b),
                                    cf::count(cf::where(!a)), cf::any(a), cf::all(b), cf::mean(a));
                  }});
}

void add_casts(Programs& list) {
  list.push_back(
      {.name = "sum_to_f16",
       .over = [](const P& p) { return cf::over(p, cf::cast<f16>(cf::sum(cf::input<f16>("x")))); },
       .fills = kFloatFills});
  list.push_back({.name = "mean_to_bf16", .over = [](const P& p) {
                    return cf::over(p, cf::cast<bf16>(cf::mean(cf::input<bf16>("x"))));
                  }});
  // Narrowing a product, or changing its sign, must not be taken for a product of the inputs.
  list.push_back({.name = "narrowed_products_i8",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<std::int8_t>("x"), y = cf::input<std::int8_t>("y");
                        return cf::over(p, cf::sum(cf::cast<std::int8_t>(x * y)),
                                        cf::sum(cf::cast<std::uint32_t>(x * y)), cf::sum(x * y),
                                        cf::sum(cf::cast<std::int64_t>(x * y)),
                                        cf::sum(cf::cast<std::uint16_t>(x)),
                                        cf::sum(cf::cast<std::uint64_t>(x)));
                      },
                  .fills = kIntegerFills});
  list.push_back({.name = "narrowed_floats", .over = [](const P& p) {
                    auto x = cf::input<f16>("x");
                    auto y = cf::input<bf16>("y");
                    return cf::over(p, cf::sum(cf::cast<bf16>(x)), cf::sum(cf::cast<f16>(y)),
                                    cf::sum(cf::cast<double>(x)),
                                    cf::sum(cf::cast<double>(x) * cf::cast<double>(x)),
                                    cf::sum(cf::cast<f16>(x * x)));
                  }});
  list.push_back({.name = "floats_to_integers",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        return cf::over(p, cf::sum(cf::cast<std::int8_t>(x * 200)),
                                        cf::sum(cf::cast<std::uint32_t>(x * 9)),
                                        cf::max(cf::cast<std::int64_t>(x * 1e12F)),
                                        cf::any(cf::cast<bool>(x)));
                      },
                  .fills = {Fill::uniform, Fill::nonfinite, Fill::whole}});
  list.push_back({.name = "integers_to_floats",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<std::int64_t>("x");
                        auto y = cf::input<std::uint64_t>("y");
                        return cf::over(p, cf::max(cf::cast<float>(x)),
                                        cf::sum(cf::cast<double>(y)), cf::min(cf::cast<f16>(x)),
                                        cf::max(cf::cast<float>(y)));
                      },
                  .fills = kIntegerFills});
  list.push_back({.name = "mixed_types", .over = [](const P& p) {
                    auto h = cf::input<f16>("h");
                    auto d = cf::input<double>("d");
                    auto b = cf::input<std::uint8_t>("b");
                    auto l = cf::input<std::int64_t>("l");
                    return cf::over(p, cf::sum(h), cf::sum(d), cf::sum(b), cf::sum(l),
                                    cf::dot(h, d), cf::sum(l * b), cf::max(h * b));
                  }});
}

void add_shapes(Programs& list) {
  list.push_back({.name = "frames",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<f16>("x");
                        return cf::over(p, cf::mean(x), cf::sqrt(cf::mean(x * x)));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "q6", .over = [](const P& p) {
                    auto ship = cf::input<std::int32_t>("shipdate");
                    auto disc = cf::input<std::int64_t>("discount");
                    auto qty = cf::input<std::int64_t>("quantity");
                    auto price = cf::input<std::int64_t>("extendedprice");
                    auto hit = ship >= 0 && ship < 9131 && disc >= -5000000 && disc <= 7000000000 &&
                               qty < 2400000000;
                    return cf::over(p, cf::sum(price * disc, cf::where(hit)));
                  }});
  list.push_back({.name = "literals_f32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        auto a = cf::param<float>("a");
                        auto b = cf::param<std::int32_t>("b");
                        auto y = cf::let(a * x + 0.75F);
                        return cf::over(p, cf::sum(2 * x), cf::sum(3 * x), cf::sum(y * y),
                                        cf::max(y) - cf::min(y), cf::sum(x) * a, cf::count() + b);
                      },
                  .params = {value_of("a", 1.5F), value_of("b", std::int32_t{-7})}});
  list.push_back({.name = "two_sums_f16",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<f16>("x"), y = cf::input<f16>("y");
                        return cf::over(p, cf::sum(x), cf::sum(y), cf::dot(x, y), cf::dot(x, x),
                                        cf::max(cf::abs(x)),
                                        cf::sum(x) / cf::sqrt(cf::dot(y, y) + 1));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "two_sums_u8",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<std::uint8_t>("x"), y = cf::input<std::uint8_t>("y");
                        return cf::over(p, cf::sum(x), cf::dot(x, y), cf::sum(y), cf::max(x));
                      },
                  .fills = kIntegerFills});
}

Programs make() {
  Programs list;
  add_folds<f16>(list);
  add_folds<bf16>(list);
  add_folds<float>(list);
  add_folds<double>(list);
  add_folds<std::int8_t>(list);
  add_folds<std::uint8_t>(list);
  add_folds<std::int16_t>(list);
  add_folds<std::uint16_t>(list);
  add_folds<std::int32_t>(list);
  add_folds<std::uint32_t>(list);
  add_folds<std::int64_t>(list);
  add_folds<std::uint64_t>(list);
  add_integer_ops<std::int8_t>(list);
  add_integer_ops<std::uint16_t>(list);
  add_integer_ops<std::int32_t>(list);
  add_integer_ops<std::uint32_t>(list);
  add_integer_ops<std::int64_t>(list);
  add_integer_ops<std::uint64_t>(list);
  add_float_ops<f16>(list);
  add_float_ops<float>(list);
  add_float_ops<double>(list);
  add_filters(list);
  add_casts(list);
  add_shapes(list);
  return list;
}

}  // namespace

const std::vector<TestProgram>& programs() {
  static const Programs kPrograms = make();
  return kPrograms;
}

const TestProgram& program(const std::string& name) {
  for (const TestProgram& program : programs()) {
    if (program.name == name) return program;
  }
  throw std::invalid_argument("there is no test program " + name);
}

std::vector<Bits> param_bits(const TestProgram& program, const codegen::Graph& graph,
                             std::int64_t segment) {
  std::vector<Bits> bits;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    if (static_cast<int>(i) == graph.partition.size_param) {
      bits.push_back(codegen::bits_of_int(graph.params[i].type, segment));
      continue;
    }
    for (const ParamValue& value : program.params) {
      if (value.name == graph.params[i].name) bits.push_back(value.bits);
    }
    if (bits.size() != i + 1) throw std::invalid_argument("no value for " + graph.params[i].name);
  }
  return bits;
}

}  // namespace chainfold::test
