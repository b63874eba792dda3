#include "chainfold/tests/support/programs.hpp"

#include "chainfold/runtime/launch/scan_arguments.hpp"

#include "chainfold/tests/support/tensor_scans.hpp"

#include <iterator>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "chainfold/tests/support/monoids.hpp"
#include "chainfold/tests/support/program_parts.hpp"

namespace chainfold::test {

namespace {

namespace cf = chainfold;
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

template <class T>
void add_statistics(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back(
      {.name = "statistics_" + type,
       .over =
           [](const P& p) {
             auto x = cf::input<T>("x"), y = cf::input<T>("y");
             return cf::over(p, cf::stddev(x), cf::variance(x, cf::ddof(1)),
                             cf::covariance(x, y, cf::ddof(2)), cf::correlation(x, y),
                             cf::skewness(x), cf::kurtosis(x));
           },
       .fills = {Fill::uniform, Fill::normal, Fill::constant, Fill::near_ends, Fill::nonfinite}});
  list.push_back({.name = "statistics_filtered_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        auto keep = cf::where(y > x);
                        return cf::over(p, cf::stddev(x, cf::ddof(1), keep),
                                        cf::covariance(x, y, keep), cf::correlation(x, y, keep),
                                        cf::skewness(y, keep), cf::kurtosis(y, keep));
                      },
                  .fills = {Fill::uniform, Fill::whole}});
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

template <class T>
void add_arg_folds(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "argmax_" + type,
                  .over = [](const P& p) { return cf::over(p, cf::argmax(cf::input<T>("x"))); },
                  .fills = fills<T>()});
  list.push_back({.name = "arg_folds_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        return cf::over(p, cf::argmin(x), cf::argmax(x),
                                        cf::argmin(x, cf::where(x > y)),
                                        cf::argmax(y, cf::where(x != x)), cf::argmax(-x));
                      },
                  .fills = fills<T>()});
}

template <class T>
void add_bit_folds(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "bit_folds_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x"), y = cf::input<T>("y");
                        auto hit = cf::where(x > y);
                        return cf::over(p, cf::bit_and(x | 15), cf::bit_or(x & y), cf::bit_xor(x),
                                        cf::bit_and(x, hit), cf::bit_or(y, hit),
                                        cf::bit_xor(x, hit), cf::product(x),
                                        cf::product(x, cf::where(x == x)));
                      },
                  .fills = kIntegerFills});
}

template <class T>
void add_products(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "product_" + type,
                  .over =
                      [](const P& p) {
                        auto x = 1 + cf::input<T>("x") / 4096;
                        return cf::over(p, cf::product(x), cf::product(x, cf::where(x > 1)));
                      },
                  .fills = {Fill::uniform, Fill::whole, Fill::nonfinite}});
}

template <class T>
void add_logsumexp(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "logsumexp_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x");
                        return cf::over(p, cf::logsumexp(x), cf::logsumexp(x * 300),
                                        cf::logsumexp(x, cf::where(x < 0.25F)),
                                        cf::logsumexp(x, cf::where(x != x)));
                      },
                  .transcendental = true,
                  .fills = {Fill::uniform, Fill::normal, Fill::whole, Fill::nonfinite}});
}

void add_index(Programs& list) {
  list.push_back({.name = "index_i16",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<std::int16_t>("x");
                        auto i = cf::index();
                        return cf::over(p, cf::sum(i * x), cf::max(i), cf::min(i),
                                        cf::sum(x, cf::where(i % 3 == 1)),
                                        cf::max(i, cf::where(x > 0)), cf::bit_xor(i * i + x));
                      },
                  .fills = kIntegerFills});
  list.push_back({.name = "index_u8",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<std::uint8_t>("x");
                        return cf::over(p, cf::sum(x), cf::sum(cf::index() * x), cf::argmin(x));
                      },
                  .fills = kIntegerFills});
}

void add_monoids(Programs& list) {
  auto add = [&](const char* name, auto over, std::vector<Fill> fills = kIntegerFills) {
    list.push_back({.name = name, .over = over, .fills = std::move(fills)});
  };
  add("longest_run_f32",
      [](const P& p) { return cf::over(p, cf::fold(longest_run(), cf::input<float>("x") > 0)); },
      {Fill::uniform});
  add("longest_run_bf16",
      [](const P& p) {
        return cf::over(p, cf::fold(longest_run(), cf::cast<float>(cf::input<cf::bf16>("x")) > 0));
      },
      {Fill::uniform});
  add("longest_run_bool",
      [](const P& p) { return cf::over(p, cf::fold(longest_run(), cf::input<bool>("x"))); });
  add("brackets_i8", [](const P& p) {
    auto x = cf::input<std::int8_t>("x");
    return cf::over(p, cf::fold(brackets(), x > 0), cf::fold(brackets(), x > 3, cf::where(x != 5)));
  });
  add("continuant_u32", [](const P& p) {
    return cf::over(p, cf::fold(continuant(), cf::input<std::uint32_t>("x")));
  });
  add("first_and_last_f64",
      [](const P& p) {
        auto x = cf::input<double>("x");
        return cf::over(p, cf::fold(first_and_last(), x),
                        cf::fold(first_and_last(), x, cf::where(x < 0.5)));
      },
      {Fill::uniform, Fill::nonfinite});
  add("horner_u8",
      [](const P& p) { return cf::over(p, cf::fold(horner(), cf::input<std::uint8_t>("x"))); });
  add("horner_u64",
      [](const P& p) { return cf::over(p, cf::fold(horner(), cf::input<std::uint64_t>("x"))); });
  add("last_even_i32", [](const P& p) {
    auto x = cf::input<std::int32_t>("x");
    return cf::over(p, cf::fold(last_even(), x, cf::index()),
                    cf::fold(last_even(), x, cf::index(), cf::where(x > 0)));
  });
  add("magnitudes_i8",
      [](const P& p) { return cf::over(p, cf::fold(magnitudes(), cf::input<std::int8_t>("x"))); });
  // Folds that need their order beside tensor cores, lanes and other types.
  add("ordered_beside_f16",
      [](const P& p) {
        auto x = cf::input<f16>("x");
        return cf::over(p, cf::sum(x), cf::fold(brackets(), x > 0), cf::max(x), cf::argmin(x),
                        cf::variance(x));
      },
      {Fill::uniform, Fill::whole});
  add("ordered_beside_i64", [](const P& p) {
    auto x = cf::input<std::int64_t>("x");
    auto y = cf::input<std::uint16_t>("y");
    return cf::over(p, cf::sum(x), cf::fold(horner(), y),
                    cf::fold(continuant(), cf::cast<std::uint32_t>(x)));
  });
}

/// Bitmaps: as filters, in conditions and values, alone, and beside folds in order.
void add_bitmaps(Programs& list) {
  const auto valid = [] { return cf::input<bool>("valid", cf::as_bits); };
  const auto add = [&](const char* name, auto over, const std::vector<Fill>& kinds) {
    list.push_back({.name = name, .over = over, .fills = kinds});
  };
  add(
      "bitmap_where_f32",
      [valid](const P& p) {
        auto x = cf::input<float>("x");
        auto v = valid();
        return cf::over(p, cf::sum(x, cf::where(v)), cf::count(cf::where(v)),
                        cf::max(x, cf::where(v && x > 0)), cf::any(!v));
      },
      kFloatFills);
  add(
      "bitmap_where_f16",
      [valid](const P& p) {
        auto x = cf::input<f16>("x");
        return cf::over(p, cf::sum(x, cf::where(valid())), cf::sum(x));
      },
      kFloatFills);
  add("bitmap_alone",
      [valid](const P& p) {
        auto v = valid();
        return cf::over(p, cf::count(cf::where(v)), cf::all(v), cf::any(v));
      },
      {Fill::uniform});
  add("bitmap_alone_argmax",
      [valid](const P& p) {
        auto v = cf::cast<std::uint8_t>(valid());
        return cf::over(p, cf::argmax(v), cf::argmin(v));
      },
      {Fill::uniform});
  add(
      "bitmap_two_i8",
      [valid](const P& p) {
        auto x = cf::input<std::int8_t>("x");
        auto w = cf::input<bool>("other", cf::as_bits);
        return cf::over(p, cf::sum(cf::select(valid(), x, -x), cf::where(w)), cf::min(x));
      },
      kIntegerFills);
  add("bitmap_beside_order_f64",
      [valid](const P& p) {
        auto x = cf::input<double>("x");
        auto v = valid();
        return cf::over(p, cf::argmax(x, cf::where(v)), cf::fold(brackets(), v),
                        cf::variance(x, cf::where(v)));
      },
      {Fill::uniform, Fill::whole});
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
  add_arg_folds<f16>(list);
  add_arg_folds<float>(list);
  add_arg_folds<double>(list);
  add_arg_folds<std::int8_t>(list);
  add_arg_folds<std::int32_t>(list);
  add_arg_folds<std::uint64_t>(list);
  add_bit_folds<std::int8_t>(list);
  add_bit_folds<std::uint16_t>(list);
  add_bit_folds<std::int32_t>(list);
  add_bit_folds<std::uint64_t>(list);
  add_products<float>(list);
  add_products<double>(list);
  add_logsumexp<f16>(list);
  add_logsumexp<float>(list);
  add_logsumexp<double>(list);
  add_index(list);
  add_monoids(list);
  add_statistics<float>(list);
  add_statistics<double>(list);
  add_statistics<std::uint8_t>(list);
  add_statistics<std::int64_t>(list);
  add_bitmaps(list);
  return list;
}

}  // namespace

const std::vector<TestProgram>& programs() {
  static const Programs kPrograms = make();
  return kPrograms;
}

const TestProgram& program(const std::string& name) {
  for (const std::vector<TestProgram>* list : {&programs(), &scan_programs()}) {
    for (const TestProgram& program : *list) {
      if (program.name == name) return program;
    }
  }
  for (const TestProgram& program : tensor_scans()) {
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

Binding input_binding(const codegen::GraphInput& input, const Column& column, std::int64_t stride) {
  if (!input.is_packed()) {
    return {input.name, static_cast<const void*>(column.data()), column.type(), column.count(),
            stride};
  }
  const auto first = static_cast<int>((column.count() + std::ssize(input.name)) % 8);
  const Column& packed = column.packed(first);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(packed.data());
  return {input.name, bits(std::span(bytes, packed.bytes()), column.count(), first)};
}

Binding scalar_binding(const codegen::GraphParam& param, Bits bits) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, &bits, sizeof value);
    return Binding(param.name, value);
  };
  switch (param.type) {
    case DType::boolean: return as(bool{});
    case DType::i8: return as(std::int8_t{});
    case DType::u8: return as(std::uint8_t{});
    case DType::i16: return as(std::int16_t{});
    case DType::u16: return as(std::uint16_t{});
    case DType::i32: return as(std::int32_t{});
    case DType::u32: return as(std::uint32_t{});
    case DType::i64: return as(std::int64_t{});
    case DType::u64: return as(std::uint64_t{});
    case DType::f32: return as(float{});
    case DType::f64: return as(double{});
    case DType::f16:
    case DType::bf16: break;
  }
  throw std::logic_error("no test binds a parameter of 16-bit floats");
}

bool scans_over_offsets(const TestProgram& program) {
  try {
    runtime::check_scan_partition(program.over(offsets("offsets")).graph());
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace chainfold::test
