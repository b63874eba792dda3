// Moments of higher order and of two variables: sums of powers and products of deviations from the
// means, merged pairwise.
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold_parts.hpp"

namespace chainfold::codegen {

namespace {

constexpr DType kReal = DType::f64, kCount = DType::i64, kExponent = DType::i32;

/// Deviations of f64 count in a unit, 2^400 to a power from -3 to 2. The unit leaves the largest of
/// them above 2^-200 and up to 2^201, the largest unit up to 2^225. So their fourth powers are
/// within range.
constexpr int kMostExponent = 3;
constexpr double kUnit = 0x1p400, kPart = 0x1p-400;
constexpr double kBounds[] = {0x1p-1000, 0x1p-600, 0x1p-200, 0x1p200, 0x1p600};
/// From here on differences may be beyond the type.
constexpr double kLarge = 0x1p1000;

/// What a state has of one variable: its mean, or a base and the mean from there, in units.
struct Variable {
  int base = -1, mean = -1, exponent = -1;
};

/// The fields that a state has of a variable of a type.
struct Form {
  DType type;
  [[nodiscard]] bool has_base() const { return type != DType::f32; }
  [[nodiscard]] bool has_units() const { return type == DType::f64; }
  [[nodiscard]] std::vector<DType> fields() const {
    if (!has_base()) return {kReal};
    return has_units() ? std::vector{type, kReal, kExponent} : std::vector{type, kReal};
  }
  [[nodiscard]] Variable at(int first) const {
    if (!has_base()) return {.base = -1, .mean = first, .exponent = -1};
    return {.base = first, .mean = first + 1, .exponent = has_units() ? first + 2 : -1};
  }
  [[nodiscard]] int count() const { return static_cast<int>(fields().size()); }
};

class Writer {
 public:
  explicit Writer(Lambda& lambda, Form form) : l_(lambda), form_(form) {}

  int number(double value) { return real(l_, value); }
  int whole(int value) { return l_.constant(kExponent, bits_of_int(kExponent, value)); }
  int op(Op op, int a, int b) { return l_.apply(op, {a, b}); }
  int add(int a, int b) { return op(Op::add, a, b); }
  int sub(int a, int b) { return op(Op::sub, a, b); }
  int mul(int a, int b) { return op(Op::mul, a, b); }
  int div(int a, int b) { return op(Op::div, a, b); }
  int choose(int condition, int a, int b) { return l_.apply(Op::select, {condition, a, b}); }
  int convert(int value) { return l_.convert(value, kReal); }
  int is_zero(int value) { return op(Op::eq, value, l_.constant(l_.type(value), 0)); }
  int sqrt(int value) { return l_.apply(Op::sqrt, {value}); }
  /// The value, or NaN with a positive sign.
  int unless(int nothing, int value) {
    return choose(nothing, number(std::numeric_limits<double>::quiet_NaN()), value);
  }

  /// An element's mean is itself, of one that is its own base 0 in the smallest unit.
  Variable lifted(int operand) {
    if (!form_.has_base()) return {.base = -1, .mean = convert(operand), .exponent = -1};
    return {.base = operand,
            .mean = number(0),
            .exponent = form_.has_units() ? whole(-kMostExponent) : -1};
  }
  /// 0, or NaN of what has no deviation from itself.
  int no_deviation(int operand) {
    return is_float(form_.type) ? convert(sub(operand, operand)) : number(0);
  }

  /// Two sides of a merge in one unit. `delta` is the difference of their means, `mean` what the
  /// earlier one's mean is there. Deviations of the earlier side are multiplied by `left`, those of
  /// the later one by `right`.
  struct Joined {
    int delta = -1, mean = -1, exponent = -1, left = -1, right = -1;
  };
  Joined joined(const Variable& a, const Variable& b) {
    if (!form_.has_base()) return {.delta = sub(b.mean, a.mean), .mean = a.mean};
    if (!form_.has_units()) {
      const int moved = add(difference(l_, a.base, b.base), b.mean);
      return {.delta = sub(moved, a.mean), .mean = a.mean};
    }
    // Of large bases half of the difference.
    const auto is_large = [&](int base) {
      return op(Op::gt, l_.apply(Op::abs, {base}), number(kLarge));
    };
    const int halves = op(Op::bit_or, is_large(a.base), is_large(b.base));
    const int half = sub(mul(b.base, number(0.5)), mul(a.base, number(0.5)));
    const int apart = choose(halves, half, sub(b.base, a.base));
    const int size = l_.apply(Op::abs, {apart});
    int exponent = whole(-kMostExponent);
    for (const double bound : kBounds) {
      const int step = choose(op(Op::gt, size, number(bound)), whole(1), whole(0));
      exponent = add(exponent, step);
    }
    exponent = op(Op::max, exponent, op(Op::max, a.exponent, b.exponent));
    const int left = in_larger(sub(exponent, a.exponent)),
              right = in_larger(sub(exponent, b.exponent));
    const int mean = mul(a.mean, left);
    const int moved = mul(in_units(apart, exponent), choose(halves, number(2), number(1)));
    const int delta = sub(add(moved, mul(b.mean, right)), mean);
    return {.delta = delta, .mean = mean, .exponent = exponent, .left = left, .right = right};
  }
  /// A sum of so many deviations' products in the joined unit; `by`: the factors.
  int in_joined(int sum, std::initializer_list<int> by) {
    for (const int factor : by)
      if (factor >= 0) sum = mul(sum, factor);
    return sum;
  }
  /// value * (2^400)^exponent, without leaving the range on the way.
  int out_of_units(int value, int exponent, int most) {
    for (int step = 1; step <= most; ++step) {
      const int up = op(Op::ge, exponent, whole(step)), down = op(Op::le, exponent, whole(-step));
      value = mul(value, choose(up, number(kUnit), choose(down, number(kPart), number(1))));
    }
    return value;
  }

 private:
  /// By what is multiplied that goes so many units up.
  int in_larger(int steps) {
    const int one = choose(op(Op::ge, steps, whole(1)), number(kPart), number(1));
    const int two = choose(op(Op::ge, steps, whole(2)), number(kPart), number(1));
    const int more = choose(op(Op::ge, steps, whole(3)), number(0), number(1));
    return mul(mul(one, two), more);
  }
  int in_units(int value, int exponent) {
    return out_of_units(value, l_.apply(Op::neg, {exponent}), kMostExponent);
  }

  Lambda& l_;
  Form form_;
};

/// Counts of both sides and what depends on them alone.
struct Counts {
  int sum = -1;                         ///< i64
  int left = -1, right = -1, all = -1;  ///< f64
  int share = -1, product = -1;         ///< right / all, left * right / all
  int empty_a = -1, empty_b = -1;
};
Counts counts_of(Writer& w, Lambda& l, int a, int b) {
  Counts c;
  c.sum = w.add(a, b);
  c.left = w.convert(a);
  c.right = w.convert(b);
  c.all = w.convert(c.sum);
  c.share = w.div(c.right, c.all);
  c.product = w.mul(c.left, c.share);
  const int none = l.constant(kCount, 0);
  c.empty_a = w.op(Op::eq, a, none);
  c.empty_b = w.op(Op::eq, b, none);
  return c;
}
/// `both`, but for a side that is empty the other's.
int choose_side(Writer& w, const Counts& c, int a, int b, int both) {
  return w.choose(c.empty_b, a, w.choose(c.empty_a, b, both));
}
void merge_variable(Writer& w, const Counts& c, const Variable& a, const Variable& b,
                    const Writer::Joined& joined, Lambda& m) {
  if (a.base >= 0) m.results.push_back(w.choose(c.empty_a, b.base, a.base));
  const int mean = m.apply(Op::fma, {joined.delta, c.share, joined.mean});
  m.results.push_back(choose_side(w, c, a.mean, b.mean, mean));
  if (a.exponent >= 0)
    m.results.push_back(choose_side(w, c, a.exponent, b.exponent, joined.exponent));
}
void lift_variable(const Variable& v, Lambda& lift) {
  for (const int field : {v.base, v.mean, v.exponent})
    if (field >= 0) lift.results.push_back(field);
}

/// The same field of the second state of a merge.
Variable moved(const Variable& v, int fields) {
  const auto by = [&](int field) { return field < 0 ? -1 : field + fields; };
  return {by(v.base), by(v.mean), by(v.exponent)};
}
/// Sums of products of two variables' deviations, fields `a` and `b`, from the joint means.
int merge_products(Writer& w, const Counts& c, const Writer::Joined& u, const Writer::Joined& v,
                   int a, int b, Lambda& m) {
  const int within = w.add(w.in_joined(a, {u.left, v.left}), w.in_joined(b, {u.right, v.right}));
  const int sum = m.apply(Op::fma, {w.mul(u.delta, c.product), v.delta, within});
  return choose_side(w, c, a, b, sum);
}

/// A fold of variables of one form: its states are a count, the variables, and sums in f64, which
/// begin at field `sums`.
struct Statistic {
  Form form;
  std::vector<Variable> variables{};
  int sums = 1, fields = 1;
  Fold fold{};

  Statistic(std::string_view name, DType type, int variable_count, int sum_count) : form{type} {
    require(type == DType::f32 || type == DType::f64 || type == DType::i64, name, type);
    fold.name = fmt::format("{}.{}", name, name_of(type));
    fold.counts = true;
    fold.state = {kCount};
    for (int v = 0; v < variable_count; ++v, sums += form.count()) {
      fold.operands.push_back(type);
      variables.push_back(form.at(sums));
      for (const DType field : form.fields()) fold.state.push_back(field);
    }
    fold.state.insert(fold.state.end(), static_cast<std::size_t>(sum_count), kReal);
    fold.init.assign(fold.state.size(), 0);
    fields = static_cast<int>(fold.state.size());
    fold.lift.params = fold.operands;
    fold.merge.params = fold.state;
    fold.merge.params.insert(fold.merge.params.end(), fold.state.begin(), fold.state.end());
    fold.finalize.params = fold.state;
  }
  [[nodiscard]] Writer lift() { return Writer(fold.lift, form); }
  [[nodiscard]] Writer merge() { return Writer(fold.merge, form); }
  [[nodiscard]] Writer finalize() { return Writer(fold.finalize, form); }

  /// Lifts elements: one, themselves, and sums that are 0; gives the deviation of each from itself.
  std::vector<int> lift_elements(Writer& l) {
    fold.lift.results = {fold.lift.constant(kCount, 1)};
    std::vector<int> none;
    const auto count = static_cast<int>(variables.size());
    for (int v = 0; v < count; ++v) none.push_back(l.no_deviation(v));
    for (int v = 0; v < count; ++v) lift_variable(l.lifted(v), fold.lift);
    return none;
  }
  /// Merges the count and the variables; gives these as they were joined.
  std::vector<Writer::Joined> merge_variables(Writer& w, const Counts& c) {
    std::vector<Writer::Joined> joined;
    for (const Variable& v : variables) joined.push_back(w.joined(v, moved(v, fields)));
    fold.merge.results = {c.sum};
    for (std::size_t v = 0; v < variables.size(); ++v)
      merge_variable(w, c, variables[v], moved(variables[v], fields), joined[v], fold.merge);
    return joined;
  }
};

}  // namespace

Fold make_comoments(DType type) {
  Statistic of("comoments", type, 2, 3);
  Fold& fold = of.fold;
  const int xx = of.sums, yy = of.sums + 1, xy = of.sums + 2;

  Writer l = of.lift();
  const std::vector<int> none = of.lift_elements(l);
  fold.lift.results.insert(fold.lift.results.end(), {none[0], none[1], l.add(none[0], none[1])});

  Writer w = of.merge();
  const Counts c = counts_of(w, fold.merge, 0, of.fields);
  const std::vector<Writer::Joined> d = of.merge_variables(w, c);
  const auto merged = [&](const Writer::Joined& u, const Writer::Joined& v, int sum) {
    fold.merge.results.push_back(merge_products(w, c, u, v, sum, sum + of.fields, fold.merge));
  };
  merged(d[0], d[0], xx);
  merged(d[1], d[1], yy);
  merged(d[0], d[1], xy);

  Writer e = of.finalize();
  const int empty = e.is_zero(0);
  int covariance = e.div(xy, e.convert(0));
  if (of.form.has_units()) {
    const int exponent = e.add(of.variables[0].exponent, of.variables[1].exponent);
    covariance = e.out_of_units(covariance, exponent, 2 * kMostExponent);
  }
  const int constant = e.op(Op::bit_or, e.is_zero(xx), e.is_zero(yy));
  const int quotient = e.div(e.div(xy, e.sqrt(xx)), e.sqrt(yy));
  const int correlation = e.op(Op::min, e.op(Op::max, quotient, e.number(-1)), e.number(1));
  fold.finalize.results = {e.unless(empty, covariance), e.unless(constant, correlation)};
  return std::move(fold);
}

Fold make_deviation() {
  Statistic of("deviation", DType::f64, 1, 1);
  Fold& fold = of.fold;
  const int squares = of.sums;

  Writer l = of.lift();
  fold.lift.results.push_back(of.lift_elements(l)[0]);

  Writer w = of.merge();
  const Counts c = counts_of(w, fold.merge, 0, of.fields);
  const Writer::Joined d = of.merge_variables(w, c)[0];
  fold.merge.results.push_back(
      merge_products(w, c, d, d, squares, squares + of.fields, fold.merge));

  Writer e = of.finalize();
  const int root = e.sqrt(e.div(squares, e.convert(0)));
  const int deviation = e.out_of_units(root, of.variables[0].exponent, kMostExponent);
  fold.finalize.results = {e.unless(e.is_zero(0), deviation)};
  return std::move(fold);
}

Fold make_shape(DType type) {
  Statistic of("shape", type, 1, 3);
  Fold& fold = of.fold;
  const int second = of.sums, third = of.sums + 1, fourth = of.sums + 2;

  Writer l = of.lift();
  const int none = of.lift_elements(l)[0];
  fold.lift.results.insert(fold.lift.results.end(), {none, none, none});

  Lambda& m = fold.merge;
  Writer w = of.merge();
  const Counts c = counts_of(w, m, 0, of.fields);
  const Writer::Joined d = of.merge_variables(w, c)[0];
  // The sums of either side in the joined unit.
  const auto joined_sum = [&](int order, bool left) {
    const int sum = second + order - 2 + (left ? 0 : of.fields), by = left ? d.left : d.right;
    return order == 2   ? w.in_joined(sum, {by, by})
           : order == 3 ? w.in_joined(sum, {by, by, by})
                        : w.in_joined(sum, {by, by, by, by});
  };
  const int a2 = joined_sum(2, true), b2 = joined_sum(2, false), a3 = joined_sum(3, true),
            b3 = joined_sum(3, false), a4 = joined_sum(4, true), b4 = joined_sum(4, false);
  // p and q are what each mean moves by: delta nb / n and -delta na / n.
  const int p = w.mul(d.delta, c.share);
  const int q = w.sub(p, d.delta);
  const int pp = w.mul(p, p), qq = w.mul(q, q);
  const int second_sum = m.apply(Op::fma, {w.mul(d.delta, c.product), d.delta, w.add(a2, b2)});
  // Each side's power sums around the joint mean, which is p above a's and q above b's.
  const auto around = [&](int n, int shift, int square, int s2, int s3, int s4) {
    const int minus = m.apply(Op::neg, {shift}), three = w.number(3), six = w.number(6),
              four = w.number(4);
    const int cube = w.mul(square, minus), power = w.mul(square, square);
    const int of3 = w.add(w.add(s3, w.mul(w.mul(three, minus), s2)), w.mul(n, cube));
    const int of4 = w.add(w.add(s4, w.mul(w.mul(four, minus), s3)),
                          w.add(w.mul(w.mul(six, square), s2), w.mul(n, power)));
    return std::pair{of3, of4};
  };
  const auto [left3, left4] = around(c.left, p, pp, a2, a3, a4);
  const auto [right3, right4] = around(c.right, q, qq, b2, b3, b4);
  const auto push = [&](int sum, int both) {
    m.results.push_back(choose_side(w, c, sum, sum + of.fields, both));
  };
  push(second, second_sum);
  push(third, w.add(left3, right3));
  push(fourth, w.add(left4, right4));

  Writer e = of.finalize();
  const int n = e.convert(0), none_apart = e.is_zero(second);
  const int spread = e.mul(second, e.sqrt(second));
  const int skewness = e.mul(e.div(third, spread), e.sqrt(n));
  const int kurtosis = e.sub(e.mul(e.div(e.div(fourth, second), second), n), e.number(3));
  fold.finalize.results = {e.unless(none_apart, skewness), e.unless(none_apart, kurtosis)};
  return std::move(fold);
}

}  // namespace chainfold::codegen
