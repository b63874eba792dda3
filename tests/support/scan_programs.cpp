// Test programs with scans: a value an element, alone, several, beside folds, in both directions.
#include <utility>

#include "chainfold/tests/support/monoids.hpp"
#include "chainfold/tests/support/program_parts.hpp"

namespace chainfold::test {

namespace {

namespace cf = chainfold;
template <class T>
void add_sums(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back(
      {.name = "scan_sum_" + type,
       .over = [](const P& p) { return cf::over(p, cf::inclusive_sum(cf::input<T>("x"))); },
       .fills = fills<T>()});
}

/// Every form of a sum and of a fold that is none, in turn.
template <class T>
void add_forms(Programs& list) {
  const std::string type(name_of(kDType<T>));
  list.push_back({.name = "scan_exclusive_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x");
                        return cf::over(p, cf::exclusive_sum(x), cf::exclusive(cf::max(x)));
                      },
                  .fills = fills<T>()});
  list.push_back({.name = "scan_backward_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x");
                        return cf::over(p, cf::inclusive_sum(x, cf::backward),
                                        cf::exclusive(cf::min(x), cf::backward));
                      },
                  .fills = fills<T>()});
  list.push_back({.name = "scan_back_out_" + type,
                  .over =
                      [](const P& p) {
                        auto x = cf::input<T>("x");
                        return cf::over(p, cf::exclusive_sum(x, cf::backward));
                      },
                  .fills = fills<T>()});
}

/// Of one or two bytes: alone, and beside folds that share their states.
void add_extremes(Programs& list) {
  const auto add = [&](const char* name, auto over, std::vector<Fill> fills = kIntegerFills) {
    list.push_back({.name = name, .over = over, .fills = std::move(fills)});
  };
  add("scan_max_i8",
      [](const P& p) { return cf::over(p, cf::inclusive(cf::max(cf::input<std::int8_t>("x")))); });
  add("scan_min_back_u16", [](const P& p) {
    return cf::over(p, cf::exclusive(cf::min(cf::input<std::uint16_t>("x")), cf::backward));
  });
  add("scan_extremes_u8", [](const P& p) {
    auto x = cf::input<std::uint8_t>("x");
    auto large = cf::where(x > std::uint8_t{40});
    return cf::over(p, cf::max(x), cf::inclusive(cf::max(x)), cf::exclusive(cf::min(x, large)),
                    cf::min(x, large), cf::min(x));
  });
  add("scan_max_f64",
      [](const P& p) { return cf::over(p, cf::inclusive(cf::max(cf::input<double>("x")))); },
      {Fill::uniform, Fill::nonfinite});
}

void add_floats(Programs& list) {
  list.push_back({.name = "scan_max_f32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        return cf::over(p, cf::inclusive(cf::max(x)), cf::exclusive(cf::min(x)));
                      },
                  .fills = kFloatFills});
  list.push_back(
      {.name = "scan_mean_f16",
       .over = [](const P& p) { return cf::over(p, cf::inclusive(cf::mean(cf::input<f16>("x")))); },
       .fills = kFloatFills});
  list.push_back({.name = "scan_mean_back_f32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        return cf::over(p, cf::inclusive(cf::mean(x), cf::backward),
                                        cf::exclusive(cf::mean(x), cf::backward));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "scan_variance_f32",
                  .over =
                      [](const P& p) {
                        return cf::over(p, cf::inclusive(cf::variance(cf::input<float>("x"))));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "scan_filtered_f16",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<f16>("x");
                        auto hit = cf::where(x > 0.25F);
                        return cf::over(p, cf::inclusive_sum(x, hit), cf::exclusive(cf::count(hit)),
                                        cf::inclusive(cf::max(x, hit)));
                      },
                  .fills = {Fill::uniform, Fill::nonfinite}});
  list.push_back({.name = "scan_product_f32",
                  .over =
                      [](const P& p) {
                        auto x = 1 + cf::input<float>("x") / 4096;
                        return cf::over(p, cf::inclusive(cf::product(x)));
                      },
                  .fills = {Fill::uniform, Fill::whole, Fill::nonfinite}});
  list.push_back({.name = "scan_logsumexp_f32",
                  .over =
                      [](const P& p) {
                        return cf::over(p, cf::inclusive(cf::logsumexp(cf::input<float>("x"))));
                      },
                  .transcendental = true,
                  .fills = {Fill::uniform, Fill::normal, Fill::whole, Fill::nonfinite}});
  // Folds that elements are told.
  list.push_back({.name = "scan_share_f32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        auto weight = x * x + 1;
                        return cf::over(p, cf::inclusive_sum(weight) / cf::sum(weight));
                      },
                  .fills = {Fill::uniform, Fill::whole}});
  list.push_back({.name = "scan_share_left_i32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<std::int32_t>("x");
                        return cf::over(p, cf::sum(x) - cf::inclusive_sum(x), cf::max(x),
                                        cf::exclusive(cf::max(x)) == cf::max(x));
                      },
                  .fills = {Fill::whole, Fill::uniform}});
  // Elements and results of several sizes at once.
  list.push_back({.name = "scan_widths",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<f16>("x");
                        auto y = cf::input<double>("y");
                        auto z = cf::input<std::uint8_t>("z");
                        return cf::over(p, cf::cast<f16>(cf::inclusive_sum(x)),
                                        cf::inclusive_sum(y), cf::exclusive(cf::max(z)));
                      },
                  .fills = kFloatFills});
  list.push_back({.name = "scan_several_f16",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<f16>("x"), y = cf::input<f16>("y");
                        return cf::over(p, cf::inclusive_sum(x), cf::exclusive_sum(y),
                                        cf::inclusive(cf::dot(x, y)),
                                        cf::inclusive(cf::max(cf::abs(x))),
                                        2 * cf::cast<float>(x) - cf::exclusive_sum(x));
                      },
                  .fills = kFloatFills});
}

/// Linear recurrences: of one factor and of an element's own, both ways, from 0 and from a value.
template <class T>
void add_recurrences(Programs& list) {
  const std::string type(name_of(kDType<T>));
  // Numbers of any size, whose products soon leave every range, and 0.
  const std::vector<Fill> fills = {Fill::uniform,   Fill::normal,    Fill::whole,
                                   Fill::near_ends, Fill::subnormal, Fill::nonfinite};
  list.push_back(
      {.name = "scan_decay_" + type,
       .over =
           [](const P& p) { return cf::over(p, cf::linear_recurrence(0.75, cf::input<T>("x"))); },
       .fills = fills});
  list.push_back({.name = "scan_recurrence_" + type,
                  .over =
                      [](const P& p) {
                        auto a = cf::input<T>("a"), x = cf::input<T>("x");
                        return cf::over(p, cf::linear_recurrence(a, x));
                      },
                  .fills = fills});
  list.push_back({.name = "scan_recurrence_back_" + type,
                  .over =
                      [](const P& p) {
                        auto a = cf::input<T>("a"), x = cf::input<T>("x");
                        auto rarely_more = cf::select(x > 1 - 0x1p-11, 3 * a, a);
                        return cf::over(p,
                                        cf::linear_recurrence(rarely_more, x, 3.5, cf::backward));
                      },
                  .fills = fills});
  list.push_back({.name = "scan_recurrences_both_ways_" + type,
                  .over =
                      [](const P& p) {
                        auto a = cf::input<T>("a"), x = cf::input<T>("x");
                        return cf::over(p, cf::linear_recurrence(2, x, -0.25),
                                        cf::linear_recurrence(a, 1, cf::backward),
                                        cf::inclusive_sum(x));
                      },
                  .fills = fills});
}

void add_others(Programs& list) {
  auto add = [&](const char* name, auto over, std::vector<Fill> fills = kIntegerFills) {
    list.push_back({.name = name, .over = over, .fills = std::move(fills)});
  };
  add(
      "scan_argmin_f32",
      [](const P& p) {
        auto x = cf::input<float>("x");
        return cf::over(p, cf::inclusive(cf::argmin(x)), cf::exclusive(cf::argmax(x)));
      },
      kFloatFills);
  add("scan_argmax_back_i16", [](const P& p) {
    return cf::over(p, cf::inclusive(cf::argmax(cf::input<std::int16_t>("x")), cf::backward));
  });
  add("scan_expressions_i32", [](const P& p) {
    auto x = cf::input<std::int32_t>("x"), y = cf::input<std::int32_t>("y");
    auto before = cf::let(cf::exclusive_sum((x & 1023) * 3 - y));
    return cf::over(p, before / 2 + x, cf::select(before > 100, before, cf::cast<std::int64_t>(y)),
                    cf::inclusive(cf::max(x) - cf::min(y)));
  });
  add("scan_index_i16", [](const P& p) {
    auto x = cf::input<std::int16_t>("x");
    auto i = cf::index();
    return cf::over(p, cf::inclusive_sum(i * x), i - cf::inclusive(cf::max(i, cf::where(x > 0))),
                    cf::exclusive(cf::max(x) - cf::count()) + cf::count() * 2);
  });
  add("scan_index_back_u8", [](const P& p) {
    auto x = cf::input<std::uint8_t>("x");
    auto i = cf::index();
    return cf::over(p, cf::inclusive_sum(i * x, cf::backward),
                    cf::exclusive(cf::min(i, cf::where(x > 3)), cf::backward) - i);
  });
  add("scan_flags_bool", [](const P& p) {
    auto a = cf::input<bool>("a"), b = cf::input<bool>("b");
    return cf::over(p, cf::inclusive(cf::any(a && b)), cf::exclusive(cf::all(a || b)),
                    cf::inclusive(cf::count(cf::where(!a))));
  });
  list.push_back({.name = "scan_offsets_i32",
                  .over =
                      [](const P& p) {
                        auto length = cf::input<std::int32_t>("length");
                        return cf::over(
                            p, cf::exclusive_sum(length & 255, cf::param<std::int64_t>("base")));
                      },
                  .params = {{"base", DType::i64, static_cast<Bits>(-1000)}},
                  .fills = kIntegerFills});
  // A value a segment and a value an element side by side.
  add(
      "scan_beside_fold_f32",
      [](const P& p) {
        auto x = cf::input<float>("x");
        return cf::over(p, cf::sum(x), cf::inclusive_sum(x), cf::mean(x), cf::inclusive(cf::max(x)),
                        cf::argmin(x), cf::count());
      },
      kFloatFills);
  add("scan_back_beside_fold_i32", [](const P& p) {
    auto x = cf::input<std::int32_t>("x");
    return cf::over(p, cf::exclusive_sum(x, cf::backward), cf::max(x), cf::fold(horner(), x));
  });
  add("scan_both_ways_i32", [](const P& p) {
    auto x = cf::input<std::int32_t>("x");
    return cf::over(p, cf::inclusive_sum(x), cf::exclusive_sum(x, cf::backward),
                    cf::inclusive(cf::max(x), cf::backward), cf::sum(x));
  });
  add("scan_share_both_ways_f32",
      [](const P& p) {
        auto x = cf::input<float>("x");
        return cf::over(p, cf::inclusive_sum(x) / cf::sum(x), cf::inclusive_sum(x, cf::backward),
                        cf::inclusive(cf::max(x)) - cf::inclusive(cf::min(x), cf::backward));
      },
      {Fill::uniform});
  // The order of merges shows in the results.
  add("scan_longest_run_f32",
      [](const P& p) {
        return cf::over(p, cf::inclusive(cf::fold(longest_run(), cf::input<float>("x") > 0)));
      },
      {Fill::uniform});
  add("scan_horner_u8", [](const P& p) {
    return cf::over(p, cf::inclusive(cf::fold(horner(), cf::input<std::uint8_t>("x"))));
  });
  add("scan_horner_back_u8", [](const P& p) {
    auto x = cf::input<std::uint8_t>("x");
    return cf::over(p, cf::inclusive(cf::fold(horner(), x), cf::backward),
                    cf::exclusive(cf::fold(horner(), x), cf::backward));
  });
  add("scan_horner_both_ways_u8", [](const P& p) {
    auto x = cf::input<std::uint8_t>("x");
    return cf::over(p, cf::inclusive(cf::fold(horner(), x), cf::backward),
                    cf::exclusive(cf::fold(horner(), x)), cf::fold(horner(), x));
  });
  add("scan_brackets_i8", [](const P& p) {
    auto x = cf::input<std::int8_t>("x");
    return cf::over(p, cf::exclusive(cf::fold(brackets(), x > 0)),
                    cf::inclusive(cf::fold(brackets(), x > 3, cf::where(x != 5))));
  });
  add("scan_brackets_back_i8", [](const P& p) {
    auto x = cf::input<std::int8_t>("x");
    return cf::over(p, cf::inclusive(cf::fold(brackets(), x > 3, cf::where(x != 5)), cf::backward));
  });
  add("scan_ordered_beside_f16",
      [](const P& p) {
        auto x = cf::input<f16>("x");
        return cf::over(p, cf::inclusive_sum(x), cf::inclusive(cf::fold(brackets(), x > 0)),
                        cf::exclusive(cf::fold(first_and_last(), cf::cast<double>(x))));
      },
      {Fill::uniform, Fill::nonfinite});
  // Forward and without positions: segments may begin anywhere.
  add(
      "scan_beside_sums_f16",
      [](const P& p) {
        auto x = cf::input<f16>("x");
        return cf::over(p, cf::sum(x), cf::inclusive_sum(x), cf::exclusive(cf::max(x)),
                        cf::min(x) + cf::mean(x));
      },
      kFloatFills);
  // Short segments of f64 are promised little error, and elements that are told a fold leave few
  // strategies.
  add("scan_share_f64",
      [](const P& p) {
        auto x = cf::input<double>("x");
        auto weight = x * x + 1;
        return cf::over(p, cf::inclusive_sum(weight) / cf::sum(weight));
      },
      {Fill::uniform, Fill::whole});
  // Of halves, whose minima and maxima CPUs find by integers.
  add(
      "scan_below_max_f16",
      [](const P& p) {
        auto x = cf::input<f16>("x");
        return cf::over(p, cf::max(x) - cf::inclusive(cf::max(x)),
                        cf::inclusive(cf::min(x, cf::where(x > 0))) == cf::min(x, cf::where(x > 0)),
                        cf::max(x));
      },
      kFloatFills);
  add("scan_share_both_ways_f64",
      [](const P& p) {
        auto x = cf::input<double>("x");
        return cf::over(p, cf::inclusive_sum(x) / cf::sum(x), cf::inclusive_sum(x, cf::backward));
      },
      {Fill::uniform});
}

/// Bitmaps as filters and alone: ranks of what is valid.
void add_bitmaps(Programs& list) {
  const auto add = [&](const char* name, auto over) {
    list.push_back({.name = name, .over = over, .fills = {Fill::uniform, Fill::whole}});
  };
  add("scan_bitmap_f32", [](const P& p) {
    auto x = cf::input<float>("x");
    auto v = cf::input<bool>("valid", cf::as_bits);
    return cf::over(p, cf::inclusive_sum(x, cf::where(v)), cf::exclusive(cf::count(cf::where(v))));
  });
  add("scan_bitmap_alone", [](const P& p) {
    auto v = cf::input<bool>("valid", cf::as_bits);
    return cf::over(p, cf::exclusive(cf::count(cf::where(v))));
  });
  add("scan_bitmap_back_i64", [](const P& p) {
    auto x = cf::input<std::int64_t>("x");
    auto v = cf::input<bool>("valid", cf::as_bits);
    return cf::over(p, cf::inclusive(cf::max(x, cf::where(v)), cf::backward),
                    cf::inclusive(cf::any(v), cf::backward));
  });
}

Programs make() {
  Programs list;
  add_sums<f16>(list);
  add_sums<bf16>(list);
  add_sums<float>(list);
  add_sums<double>(list);
  add_sums<std::int8_t>(list);
  add_sums<std::uint8_t>(list);
  add_sums<std::int32_t>(list);
  add_sums<std::uint64_t>(list);
  add_forms<f16>(list);
  add_forms<float>(list);
  add_forms<std::int8_t>(list);
  add_forms<std::int64_t>(list);
  add_floats(list);
  add_others(list);
  add_recurrences<float>(list);
  add_recurrences<double>(list);
  list.push_back({.name = "scan_statistics_f64",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<double>("x"), y = cf::input<double>("y");
                        return cf::over(p, cf::inclusive(cf::stddev(x, cf::ddof(1)), cf::backward),
                                        cf::exclusive(cf::correlation(x, y), cf::backward));
                      },
                  .fills = {Fill::uniform, Fill::normal, Fill::constant},
                  .of_some = true});
  list.push_back({.name = "scan_initial_f32",
                  .over =
                      [](const P& p) {
                        auto x = cf::input<float>("x");
                        auto hit = cf::where(x > 0);
                        return cf::over(p, cf::inclusive_sum(x, hit, 2.5F),
                                        cf::exclusive(cf::min(x), 0.25F),
                                        cf::inclusive(cf::max(x, hit), -0.5F),
                                        cf::exclusive(cf::count(hit), 7));
                      },
                  .fills = {Fill::uniform, Fill::whole, Fill::nonfinite}});
  add_extremes(list);
  add_bitmaps(list);
  return list;
}

}  // namespace

const std::vector<TestProgram>& scan_programs() {
  static const Programs kPrograms = make();
  return kPrograms;
}

}  // namespace chainfold::test
