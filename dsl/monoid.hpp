// Monoids: folds of one's own, written as expressions over the fields of a state.
//
//     // The longest run of true: (length of the prefix of true, longest, suffix, elements).
//     auto longest_run = cf::monoid(
//         "longest_run",
//         cf::state<std::int64_t, std::int64_t, std::int64_t, std::int64_t>(0, 0, 0, 0),
//         [](auto hit) {                                  // an element as a state
//           auto one = cf::cast<std::int64_t>(hit);
//           return cf::fields(one, one, one, 1);
//         },
//         [](auto a, auto b) {                            // a state and the one right behind it
//           auto [a_first, a_best, a_last, a_count] = a;
//           auto [b_first, b_best, b_last, b_count] = b;
//           return cf::fields(cf::select(a_first == a_count, a_count + b_first, a_first),
//                             cf::max(cf::max(a_best, b_best), a_last + b_first),
//                             cf::select(b_last == b_count, b_count + a_last, b_last),
//                             a_count + b_count);
//         },
//         [](auto s) { return cf::get<1>(s); });          // the value of a state
//     auto runs = cf::over(cf::segments(4096), cf::fold(longest_run, x > 0));
//
// The functions. `lift` gets one argument an operand of cf::fold, `merge` two states, `finalize`
// one. Their results are made of these arguments, literals and the operations of ops.hpp. An input,
// a parameter or another fold is an operand of cf::fold, not a part of a monoid. Both sides of
// cf::select are computed. A field has the state's type: values convert where none is lost, others
// have to be cast.
//
// The contract. `merge` is associative (up to rounding) and the state's initial values are its
// identity on both sides. So a segment may be cut anywhere, and it is: over lanes, warps, blocks
// and launches. Elements are merged in order. The elements of a monoid that is marked
// `.commutative()` may be merged in any order, which is faster.
//
// The check. `cf::fold` tries these laws on states of random elements and refuses a monoid that
// breaks one. A monoid that is marked with cf::unchecked is not tried: it is lawful for the
// elements that its author knows to occur.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/codegen/graph/monoid_laws.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/literal.hpp"
#include "chainfold/dsl/monoid_rules.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {

/// The type of cf::unchecked.
struct Unchecked {};
/// The last argument of a monoid whose laws hold for the elements that occur, though not for all.
/// Its laws are not tried. An example: a maximum from 0 on, of numbers that are not negative.
inline constexpr Unchecked unchecked{};

namespace dsl {

/// An argument of a monoid's lift, merge or finalize, or one field of it.
template <DType T>
struct Field : Leaf<T, Level::state> {
  explicit Field(int number) : index(number) {}
  codegen::NodeId write(Walk& walk) const { return walk.builder.field(index, T); }
  int index;
};

/// The fields of a state; `auto [p, q] = fields` names them.
template <class... E>
class Fields {
 public:
  explicit Fields(E... values) : values_(std::move(values)...) {}
  /// Field I.
  template <std::size_t I>
  [[nodiscard]] auto get() const {
    static_assert(I < sizeof...(E), "chainfold: the state has fewer fields");
    return std::get<I>(values_);
  }
  static constexpr std::size_t kCount = sizeof...(E);

 private:
  std::tuple<E...> values_;
};

template <class T>
struct IsFields : std::false_type {};
template <class... E>
struct IsFields<Fields<E...>> : std::true_type {};

inline constexpr std::size_t kMaxFields = 16;

/// The types and the initial values of a monoid's state.
template <Element... T>
class State {
 public:
  static_assert(sizeof...(T) > 0, "chainfold: a monoid's state needs at least one field");
  static_assert(sizeof...(T) <= kMaxFields, "chainfold: a monoid's state has at most 16 fields");
  explicit State(T... values) : init_{codegen::bits_of(values)...} {}
  [[nodiscard]] const std::vector<codegen::Bits>& init() const { return init_; }
  static std::vector<DType> types() { return {kDType<T>...}; }
  static constexpr std::size_t kCount = sizeof...(T);
  template <std::size_t I>
  static constexpr DType kField = kDType<std::tuple_element_t<I, std::tuple<T...>>>;

 private:
  std::vector<codegen::Bits> init_;
};

/// The arguments that stand for a state whose first field is parameter `Offset`.
template <std::size_t Offset, Element... T>
auto arguments_of(const State<T...>&) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Fields<Field<kDType<T>>...>(Field<kDType<T>>(static_cast<int>(Offset + I))...);
  }(std::index_sequence_for<T...>{});
}

template <class S>
struct IsState : std::false_type {};
template <class... T>
struct IsState<State<T...>> : std::true_type {};

template <class Name, class S, class Lift, class Merge, class Finalize, class... Last>
constexpr bool monoid_arguments() {
  return std::convertible_to<const Name&, std::string_view> && IsState<S>::value &&
         sizeof...(Last) <= 1 && (std::same_as<Last, Unchecked> && ...);
}
/// A name, a state, three functions and, if wanted, cf::unchecked.
template <class... A>
concept MonoidArguments = requires { requires monoid_arguments<A...>(); };
template <class... A>
struct MonoidArgumentsRule {
  static_assert(MonoidArguments<A...>,
                "chainfold: cf::monoid takes a name, the initial state, lift, merge and finalize, "
                "e.g. cf::monoid(\"m\", cf::state<float>(0), lift, merge, finalize)");
};

/// One returned field as a node of the state's type.
template <DType T, class X>
codegen::NodeId write_field(Walk& walk, const X& x) {
  if constexpr (Expression<X>) {
    (void)FieldLevelRule<kLevelOf<X>>{};
    (void)FieldTypeRule<kTypeOf<X>, T>{};
    return walk.builder.convert(x.write(walk), T);
  } else {
    return as_expression<T, T>(x).write(walk);
  }
}

/// What lift or merge returned, as nodes: Fields, or a value for a state of one field.
template <class S, class R>
std::vector<codegen::NodeId> write_fields(Walk& walk, const R& returned) {
  if constexpr (IsFields<R>::value) {
    (void)FieldCountRule<R::kCount, S::kCount>{};
    if constexpr (R::kCount == S::kCount) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::vector<codegen::NodeId>{
            write_field<S::template kField<I>>(walk, returned.template get<I>())...};
      }(std::make_index_sequence<S::kCount>{});
    }
  } else if constexpr (Expression<R> || Scalar<R>) {
    (void)FieldCountRule<1, S::kCount>{};
    if constexpr (S::kCount == 1) return {write_field<S::template kField<0>>(walk, returned)};
  } else {
    (void)FieldCountRule<0, S::kCount>{};
  }
  return {};
}

/// A monoid as the user wrote it; `Out` is the type of its value.
template <class S, class Lift, DType Out>
struct Monoid {
  static constexpr DType kOut = Out;
  std::string name;
  S state;
  Lift lift;
  codegen::Lambda merge, finalize;
  bool is_commutative = false;
  bool is_unchecked = false;

  /// The same monoid, of which merge(a, b) is merge(b, a): elements may be merged in any order.
  [[nodiscard]] Monoid commutative() const {
    Monoid out = *this;
    out.is_commutative = true;
    return out;
  }

  /// The fold of operands of these types; `positions`: which of them are cf::index().
  template <DType... In>
  [[nodiscard]] codegen::Fold fold(const std::vector<bool>& positions) const {
    const std::vector<DType> operands{In...};
    Walk walk;
    const auto lifted = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return lift(Field<In>(static_cast<int>(I))...);
    }(std::make_index_sequence<sizeof...(In)>{});
    const auto results = write_fields<S>(walk, lifted);
    codegen::Fold out = codegen::make_monoid(
        {.name = name,
         .operands = operands,
         .state = S::types(),
         .init = state.init(),
         .lift = walk.builder.lambda("the lift of the monoid " + name, operands, results),
         .merge = merge,
         .finalize = finalize,
         .commutative = is_commutative});
    if (!is_unchecked) codegen::check_laws(out, name, positions);
    return out;
  }
};

template <class M>
struct IsMonoid : std::false_type {};
template <class S, class Lift, DType Out>
struct IsMonoid<Monoid<S, Lift, Out>> : std::true_type {};
template <class M>
concept AMonoid = IsMonoid<std::remove_cvref_t<M>>::value;

template <class E>
constexpr bool scans_at_all() {
  if constexpr (Expression<E>) {
    return E::kScans;
  } else {
    return false;
  }
}
template <class E>
constexpr Level level_or_element() {
  if constexpr (Expression<E>) {
    return kLevelOf<E>;
  } else {
    return Level::element;
  }
}

/// The monoid's fold over the elements of E... that pass F.
template <DType Out, class F, class... E>
using FoldNode = Node<Out, Level::segment, ((1 + F::kNodes) + ... + E::kNodes),
                      1 + std::max({F::kDepth, E::kDepth...})>;
template <DType Out, class F, class... E>
struct FoldOfMonoid : FoldNode<Out, F, E...> {
  FoldOfMonoid(codegen::Fold fold_of_types, F where, E... operands)
      : FoldNode<Out, F, E...>(std::max({where.let_depth, operands.let_depth...})),
        fold(std::move(fold_of_types)),
        e(std::move(operands)...),
        filter(std::move(where)) {}
  static constexpr bool kFolds = true;
  codegen::NodeId write(Walk& walk) const {
    std::vector<codegen::NodeId> values;
    std::apply([&](const auto&... x) { (values.push_back(x.write(walk)), ...); }, e);
    return walk.builder.fold(fold, std::move(values), filter.write(walk));
  }
  codegen::Fold fold;
  std::tuple<E...> e;
  F filter;
};

template <class M, class F, class... E>
auto fold_monoid(const M& monoid, F filter, E... operands) {
  ((void)MonoidOperandRule<Expression<E>, level_or_element<E>()>{}, ...);
  ((void)FoldLevelRule<level_or_element<E>()>{}, ...);
  ((void)NoScanRule<scans_at_all<E>()>{}, ...);
  constexpr bool kTakes = std::is_invocable_v<const decltype(monoid.lift)&, Field<kTypeOf<E>>...>;
  (void)LiftArgumentsRule<kTakes>{};
  if constexpr (kTakes) {
    return FoldOfMonoid<M::kOut, F, E...>(
        monoid.template fold<kTypeOf<E>...>({std::same_as<E, Index>...}), std::move(filter),
        std::move(operands)...);
  }
}

}  // namespace dsl

/// The initial values of a monoid's state, which are the identity of its merge. T... are the types
/// of its fields, e.g. cf::state<float, std::int64_t>(0, 0).
template <class... T>
auto state(T... initial) {
  ((void)ElementRule<T>{}, ...);
  if constexpr ((Element<T> && ...)) {
    return dsl::State<T...>(initial...);
  } else {
    return dsl::State<ElementOr<T>...>(ElementOr<T>{}...);
  }
}

/// The fields of a state, as lift and merge return them: expressions of their arguments, or
/// literals.
template <class... E>
  requires((Expression<E> || dsl::Scalar<E>) && ...)
auto fields(E&&... values) {
  return dsl::Fields<std::remove_cvref_t<E>...>(std::forward<E>(values)...);
}

/// Field I of a state.
template <std::size_t I, class... E>
auto get(const dsl::Fields<E...>& fields) {
  return fields.template get<I>();
}

/// A fold of one's own: see the top of this file. `name`, of letters, digits and underscores,
/// appears in `explain`. Throws UserError:
///
///     invalid_argument   another name, or an initial state that merge with itself changes
///     type_mismatch      a literal that its field's type does not hold
///     unsupported        a parameter inside the monoid
///
/// Errors in lift, and laws that do not hold, are thrown by cf::fold, where the arguments of lift
/// have types.
template <Element... T, class Lift, class Merge, class Finalize>
auto monoid(std::string_view name, const dsl::State<T...>& initial, Lift lift, Merge merge,
            Finalize finalize) {
  using S = dsl::State<T...>;
  const std::string word(name);
  const auto a = dsl::arguments_of<0>(initial);
  const auto b = dsl::arguments_of<S::kCount>(initial);
  using Arguments = std::remove_cv_t<decltype(a)>;
  constexpr bool kMerges = std::is_invocable_v<Merge&, Arguments, Arguments>;
  constexpr bool kEnds = std::is_invocable_v<Finalize&, Arguments>;
  (void)dsl::MergeArgumentsRule<kMerges>{};
  (void)dsl::FinalizeArgumentsRule<kEnds>{};
  if constexpr (kMerges && kEnds) {
    using Value = std::remove_cvref_t<decltype(finalize(a))>;
    (void)dsl::FinalizeRule<Expression<Value>>{};
    if constexpr (Expression<Value>) {
      (void)dsl::FieldLevelRule<kLevelOf<Value>>{};
      std::vector<DType> params = S::types(), both = params;
      both.insert(both.end(), params.begin(), params.end());
      dsl::Walk merge_walk, finalize_walk;
      const auto merged = dsl::write_fields<S>(merge_walk, merge(a, b));
      const codegen::NodeId value = finalize(a).write(finalize_walk);
      dsl::Monoid<S, Lift, kTypeOf<Value>> out{
          .name = word,
          .state = initial,
          .lift = std::move(lift),
          .merge = merge_walk.builder.lambda("the merge of the monoid " + word, both, merged),
          .finalize =
              finalize_walk.builder.lambda("the finalize of the monoid " + word, params, {value})};
      // All but lift is known: its errors are reported here, not where it is first used.
      (void)codegen::make_monoid({.name = word,
                                  .operands = {},
                                  .state = std::move(params),
                                  .init = initial.init(),
                                  .lift = {},
                                  .merge = out.merge,
                                  .finalize = out.finalize});
      return out;
    }
  }
}

/// The same, whose laws are not tried.
template <Element... T, class Lift, class Merge, class Finalize>
auto monoid(std::string_view name, const dsl::State<T...>& initial, Lift lift, Merge merge,
            Finalize finalize, Unchecked) {
  auto out = monoid(name, initial, std::move(lift), std::move(merge), std::move(finalize));
  out.is_unchecked = true;
  return out;
}

/// Refused: other arguments, or in another order.
template <class... A>
  requires(!dsl::MonoidArguments<A...>)
auto monoid(const A&...) {
  (void)dsl::MonoidArgumentsRule<A...>{};
  return dsl::Refused();
}

/// A monoid of one's own over the elements of its operands:
///
///     cf::fold(m, x)
///     cf::fold(m, x, cf::index())
///     cf::fold(m, x, y, cf::where(x > 0))
template <dsl::AMonoid M, class... A>
  requires(sizeof...(A) > 0)
auto fold(const M& monoid, const A&... arguments) {
  constexpr std::size_t kLast = sizeof...(A) - 1;
  const auto all = std::tie(arguments...);
  using Last = std::remove_cvref_t<std::tuple_element_t<kLast, std::tuple<A...>>>;
  if constexpr (dsl::AFilter<Last> && kLast > 0) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return dsl::fold_monoid(monoid, std::get<kLast>(all), std::get<I>(all)...);
    }(std::make_index_sequence<kLast>{});
  } else {
    return dsl::fold_monoid(monoid, dsl::NoFilter{}, arguments...);
  }
}

/// Refused: a fold without a monoid at first, or without an expression behind it.
template <class M, class... A>
  requires(!dsl::AMonoid<M> || sizeof...(A) == 0)
auto fold(const M&, const A&...) {
  (void)dsl::FoldOrderRule<dsl::AMonoid<M>>{};
  return dsl::Refused();
}

}  // namespace chainfold

template <class... E>
struct std::tuple_size<chainfold::dsl::Fields<E...>>
    : std::integral_constant<std::size_t, sizeof...(E)> {};
template <std::size_t I, class... E>
struct std::tuple_element<I, chainfold::dsl::Fields<E...>> {
  using type = std::tuple_element_t<I, std::tuple<E...>>;
};
