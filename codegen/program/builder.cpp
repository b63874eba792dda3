#include "chainfold/codegen/program/builder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {

namespace {
enum KeyKind : std::int64_t { kConst, kSpecial, kParam, kCompute, kSplat, kExtract, kFragment };

/// 1 / b where b is a power of two and 1 / b is a normal number. A product with it has the bits of
/// a division by b, and takes fewer instructions.
std::optional<Bits> exact_reciprocal(DType type, Bits b) {
  if (type != DType::f32 && type != DType::f64) return std::nullopt;
  int exponent = 0;
  const double value = double_of_bits(type, b);
  if (std::abs(std::frexp(value, &exponent)) != 0.5) return std::nullopt;  // NaN, 0, infinite, too
  const double inverse = 1 / value, size = std::abs(inverse);
  const bool single = type == DType::f32;
  const double least =
      single ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  const double most =
      single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  if (size < least || size > most) return std::nullopt;
  return bits_of_double(type, inverse);
}
}  // namespace

Builder::Builder(Program& program) : program_(program) {
  if (program.launches.empty()) throw InternalError("a Builder needs a launch to write to");
  regions_.push_back(&program.launches.back().body);
  known_.emplace_back();
}

ValueId Builder::new_value(const Type& type) {
  program_.values.push_back(type);
  return static_cast<ValueId>(program_.values.size() - 1);
}

ValueId Builder::emit(Operation op, const Type& type, const Key* key) {
  const ValueId id = new_value(type);
  regions_.back()->body.push_back({std::move(op), {id}});
  if (key) known_.back().emplace(*key, id);
  return id;
}

ValueId Builder::pure(Operation op, const Type& type, Key key) {
  for (const auto& scope : known_) {
    if (auto it = scope.find(key); it != scope.end()) return it->second;
  }
  return emit(std::move(op), type, &key);
}

std::optional<Bits> Builder::constant_of(ValueId id) const {
  auto it = constants_.find(id);
  if (it == constants_.end()) return std::nullopt;
  return it->second;
}

ValueId Builder::constant(DType elem, Bits bits) {
  const ValueId id =
      pure(Const{bits}, uniform(elem),
           {kConst, static_cast<std::int64_t>(elem), static_cast<std::int64_t>(bits)});
  constants_.emplace(id, bits);
  return id;
}

ValueId Builder::block() {
  return pure(Special{Builtin::block}, uniform(DType::i64), {kSpecial, 0});
}
ValueId Builder::warp() { return pure(Special{Builtin::warp}, uniform(DType::i32), {kSpecial, 1}); }
ValueId Builder::lane() {
  return pure(Special{Builtin::lane}, codegen::lane(DType::i32), {kSpecial, 2});
}
ValueId Builder::streams() {
  return pure(Special{Builtin::streams}, uniform(DType::boolean), {kSpecial, 3});
}
ValueId Builder::param(int index) {
  return pure(ParamRef{index}, uniform(program_.params[static_cast<std::size_t>(index)].type),
              {kParam, index});
}

ValueId Builder::load(int buffer, const Address& at, int width, ValueId mask, ValueId ahead,
                      bool once) {
  const DType elem = program_.buffers[static_cast<std::size_t>(buffer)].type;
  return emit(Load{buffer, at, mask, ahead, once}, codegen::lane(elem, width));
}
ValueId Builder::load_uniform(int buffer, ValueId base, ValueId mask) {
  const DType elem = program_.buffers[static_cast<std::size_t>(buffer)].type;
  return emit(Load{.buffer = buffer, .at = {base}, .mask = mask}, uniform(elem));
}
void Builder::store(int buffer, const Address& at, ValueId value, ValueId mask, bool streams) {
  const ValueId wide = splat(value);
  regions_.back()->body.push_back({Store{buffer, at, mask, wide, streams}, {}});
}
void Builder::store_uniform(int buffer, ValueId base, ValueId value, ValueId mask) {
  const ValueId first = first_lane(value);
  regions_.back()->body.push_back({Store{buffer, {base}, mask, first}, {}});
}
ValueId Builder::atomic_add(int buffer, const Address& at, ValueId value, ValueId mask,
                            AtomicOrder order) {
  const DType elem = program_.buffers[static_cast<std::size_t>(buffer)].type;
  return emit(AtomicAdd{buffer, at, mask, splat(value), order}, codegen::lane(elem));
}
ValueId Builder::shared_load(int array, const Address& at, int width, ValueId mask) {
  const DType elem = program_.launches.back().shared[static_cast<std::size_t>(array)].type;
  return emit(SharedLoad{array, at, mask}, codegen::lane(elem, width));
}
void Builder::shared_store(int array, const Address& at, ValueId value, ValueId mask) {
  const ValueId wide = splat(value);
  regions_.back()->body.push_back({SharedStore{array, at, mask, wide}, {}});
}

ValueId Builder::compute(Op op, Values operands) {
  Type result = type(operands.back());
  bool lanes = false;
  int width = 1;
  bool constant_operands = true;
  for (ValueId id : operands) {
    lanes = lanes || type(id).shape == Shape::lane;
    width = std::max<int>(width, type(id).width);
    constant_operands = constant_operands && constant_of(id).has_value();
  }
  const DType operand_type = result.elem;
  if (is_test(op)) result.elem = DType::boolean;
  result.shape = lanes ? Shape::lane : Shape::uniform;
  result.width = static_cast<std::int16_t>(width);
  if (constant_operands) {
    Bits in[3] = {0, 0, 0};
    for (std::size_t i = 0; i < operands.size(); ++i) in[i] = *constant_of(operands[i]);
    return constant(result.elem, evaluate(op, operand_type, result.elem, in[0], in[1], in[2]));
  }
  if (op == Op::select) {
    const auto c = constant_of(operands[0]);
    const ValueId chosen = c ? operands[*c ? 1 : 2] : operands[1];
    const bool known = c || operands[1] == operands[2];
    if (known && type(chosen).shape == result.shape && type(chosen).width == result.width)
      return chosen;
  }
  if (is_integer(operand_type) && operands.size() == 2) {  // identities that hold bit for bit
    const auto a = constant_of(operands[0]), b = constant_of(operands[1]);
    if (op == Op::add && a == Bits{0}) return operands[1];
    if ((op == Op::add || op == Op::sub) && b == Bits{0}) return operands[0];
    if (op == Op::sub && a == Bits{0}) return compute(Op::neg, {operands[1]});
    if (op == Op::mul && a == Bits{1}) return operands[1];
    if (op == Op::mul && (a == Bits{0} || b == Bits{0}) && width == 1 && !lanes)
      return constant(operand_type, 0);
    if ((op == Op::mul || op == Op::div) && b == Bits{1}) return operands[0];
    if (is_signed(operand_type)) {
      const Bits minus_one = bits_of_int(operand_type, -1);
      if ((op == Op::mul || op == Op::div) && b == minus_one)
        return compute(Op::neg, {operands[0]});
      if (op == Op::mul && a == minus_one) return compute(Op::neg, {operands[1]});
    }
  }
  if (op == Op::div) {
    if (const auto b = constant_of(operands[1])) {
      if (const auto inverse = exact_reciprocal(operand_type, *b))
        return compute(Op::mul, {operands[0], constant(operand_type, *inverse)});
    }
  }
  if (operand_type == DType::boolean && operands.size() == 2) {
    const auto a = constant_of(operands[0]), b = constant_of(operands[1]);
    if (op == Op::bit_and && a == Bits{1}) return operands[1];
    if (op == Op::bit_and && b == Bits{1}) return operands[0];
  }
  Key key{kCompute, static_cast<std::int64_t>(op), static_cast<std::int64_t>(result.elem)};
  for (ValueId id : operands) key.push_back(id);
  return pure(Compute{op, std::move(operands)}, result, std::move(key));
}

ValueId Builder::cast(Op op, ValueId value, DType to) {
  Type result = type(value);
  if (result.elem == to) return value;
  if (auto c = constant_of(value)) return constant(to, evaluate(op, result.elem, to, *c));
  result.elem = to;
  return pure(Compute{op, {value}}, result,
              {kCompute, static_cast<std::int64_t>(op), static_cast<std::int64_t>(to), value});
}

ValueId Builder::both(ValueId a, ValueId b) {
  if (a == kNoValue) return b;
  if (b == kNoValue) return a;
  return compute(Op::bit_and, {a, b});
}

ValueId Builder::splat(ValueId value) {
  Type result = type(value);
  if (result.shape != Shape::uniform) return value;
  result.shape = Shape::lane;
  return pure(Splat{value}, result, {kSplat, value});
}

ValueId Builder::widen(ValueId value, int width) {
  if (type(value).width == width) return splat(value);
  return concat(Values(static_cast<std::size_t>(width), value));
}

ValueId Builder::extract(ValueId value, int first, int width) {
  Type result = type(value);
  if (result.shape != Shape::fragment && first == 0 && width == result.width) return value;
  const Shape shape = result.shape == Shape::uniform ? Shape::uniform : Shape::lane;
  result = {.elem = result.elem, .shape = shape, .width = static_cast<std::int16_t>(width)};
  return pure(Extract{value, first}, result, {kExtract, value, first, width});
}

ValueId Builder::concat(Values parts) {
  if (parts.size() == 1) return parts[0];
  Type result = type(parts[0]);
  int width = 0;
  for (ValueId& id : parts) {
    id = splat(id);
    width += type(id).width;
  }
  result.shape = Shape::lane;
  result.width = static_cast<std::int16_t>(width);
  return emit(Concat{std::move(parts)}, result);
}

ValueId Builder::shuffle_xor(ValueId value, int mask) {
  return emit(Shuffle{ShuffleKind::xor_mask, value, mask, kNoValue}, type(value));
}
ValueId Builder::shuffle_from(ValueId value, ValueId source_lane) {
  return emit(Shuffle{ShuffleKind::from_lane, value, 0, source_lane}, type(value));
}
ValueId Builder::shuffle_up(ValueId value, int distance) {
  if (distance == 0) return value;
  return emit(Shuffle{ShuffleKind::up, value, distance, kNoValue}, type(value));
}
ValueId Builder::shuffle_down(ValueId value, int distance) {
  if (distance == 0) return value;
  return emit(Shuffle{ShuffleKind::down, value, distance, kNoValue}, type(value));
}
ValueId Builder::first_lane(ValueId value) {
  Type result = type(value);
  if (result.shape == Shape::uniform) return value;
  result.shape = Shape::uniform;
  return emit(Shuffle{ShuffleKind::first, value, 0, kNoValue}, result);
}
ValueId Builder::permute(ValueId value, std::vector<std::uint8_t> source) {
  bool identity = true;
  for (std::size_t l = 0; l < source.size(); ++l) identity = identity && source[l] == l;
  if (identity) return value;
  return emit(Permute{value, std::move(source)}, type(value));
}
ValueId Builder::permute(ValueId value, ValueId other, std::vector<std::uint8_t> source) {
  if (value == other && type(value).shape == Shape::uniform) return value;
  const ValueId first = splat(value), second = splat(other);
  return emit(Permute{first, std::move(source), second}, type(first));
}
ValueId Builder::funnel(ValueId low, ValueId high, ValueId from) {
  return emit(Funnel{low, high, from}, type(low));
}
ValueId Builder::any(ValueId lanes) {
  return emit(Vote{VoteKind::any, lanes}, uniform(DType::boolean));
}
ValueId Builder::all(ValueId lanes) {
  return emit(Vote{VoteKind::all, lanes}, uniform(DType::boolean));
}

ValueId Builder::count(ValueId lanes) {
  return emit(Vote{VoteKind::count, lanes}, uniform(DType::i32));
}

ValueId Builder::const_fragment(int mma_row, Operand operand, const ConstMatrix& matrix) {
  return pure(
      ConstFragment{matrix}, fragment(mma_row, operand),
      {kFragment, mma_row, static_cast<std::int64_t>(operand),
       static_cast<std::int64_t>(matrix.kind), matrix.parameter, matrix.load_width, matrix.step});
}
ValueId Builder::pack(int mma_row, Operand operand, std::vector<std::pair<ValueId, int>> pieces) {
  return emit(Pack{std::move(pieces)}, fragment(mma_row, operand));
}
ValueId Builder::mma(ValueId a, ValueId b, ValueId c) { return emit(Mma{a, b, c}, type(c)); }
void Builder::barrier() { regions_.back()->body.push_back({Barrier{}, {}}); }

ValueId Builder::misalignment(int buffer, ValueId first, int unit) {
  return emit(Misalignment{buffer, first, unit}, uniform(DType::i64));
}
void Builder::copy_async(const CopyAsync& copy) { regions_.back()->body.push_back({copy, {}}); }
void Builder::copy_out(const CopyOut& copy) { regions_.back()->body.push_back({copy, {}}); }
void Builder::copy_out_wait() { regions_.back()->body.push_back({CopyOutWait{}, {}}); }
void Builder::copy_wait(int ring, ValueId slot, ValueId round) {
  regions_.back()->body.push_back({CopyWait{ring, slot, round}, {}});
}
ValueId Builder::ticket(int counter) { return emit(Ticket{counter}, uniform(DType::i64)); }
void Builder::publish(int flags, ValueId slot, ValueId ticket, Values values, bool helps) {
  regions_.back()->body.push_back({Publish{flags, slot, ticket, std::move(values), helps}, {}});
}
ValueId Builder::overdue(const Overdue& look) { return emit(look, uniform(DType::i64)); }
Builder::Values Builder::await(const Await& wait, const std::vector<DType>& types) {
  Values results;
  for (const DType type : types) {
    results.push_back(static_cast<ValueId>(program_.values.size()));
    program_.values.push_back(codegen::lane(type));
  }
  regions_.back()->body.push_back({wait, results});
  return results;
}

Builder::Values Builder::gather(Values values) {
  Values results;
  for (const ValueId id : values) {
    results.push_back(static_cast<ValueId>(program_.values.size()));
    program_.values.push_back(codegen::lane(type(id).elem));
  }
  regions_.back()->body.push_back({Gather{std::move(values)}, results});
  return results;
}

Builder::Values Builder::run_region(Region& region, const std::function<Values()>& fn) {
  regions_.push_back(&region);
  known_.emplace_back();
  Values yields = fn();
  // Constants of an inner region must not be found from outside it.
  for (const auto& [key, id] : known_.back()) {
    if (key[0] == kConst) constants_.erase(id);
  }
  known_.pop_back();
  regions_.pop_back();
  return yields;
}

Builder::Values Builder::loop(ValueId lo, ValueId hi, ValueId step, const Values& init,
                              const std::function<Values(ValueId, const Values&)>& body, bool few) {
  For loop{.lo = lo,
           .hi = hi,
           .step = step,
           .index = new_value(type(lo)),
           .init = init,
           .carried = {},
           .body = {},
           .few = few};
  Values results;
  for (ValueId id : init) loop.carried.push_back(new_value(type(id)));
  for (ValueId id : init) results.push_back(new_value(type(id)));
  loop.body.yields = run_region(loop.body, [&] {
    Values next = body(loop.index, loop.carried);
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (type(init[i]).shape == Shape::lane) next[i] = splat(next[i]);
    }
    return next;
  });
  regions_.back()->body.push_back({std::move(loop), results});
  return results;
}

Builder::Values Builder::branch(ValueId condition, const std::function<Values()>& then_body,
                                const std::function<Values()>& else_body) {
  if (auto c = constant_of(condition)) return *c ? then_body() : else_body();
  auto splatted = [&](const std::function<Values()>& fn) {
    return [&] {
      Values yields = fn();
      for (ValueId& id : yields) id = splat(id);
      return yields;
    };
  };
  return branch_as_is(condition, splatted(then_body), splatted(else_body));
}

ValueId Builder::branch_uniform(ValueId condition, const std::function<ValueId()>& then_body,
                                const std::function<ValueId()>& else_body) {
  return branch_as_is(
      condition, [&] { return Values{then_body()}; }, [&] { return Values{else_body()}; })[0];
}

Builder::Values Builder::branch_as_is(ValueId condition, const std::function<Values()>& then_body,
                                      const std::function<Values()>& else_body) {
  if (auto c = constant_of(condition)) return *c ? then_body() : else_body();
  If branch{.condition = condition, .then_body = {}, .else_body = {}};
  branch.then_body.yields = run_region(branch.then_body, then_body);
  branch.else_body.yields = run_region(branch.else_body, else_body);
  Values results;
  for (ValueId id : branch.then_body.yields) results.push_back(new_value(type(id)));
  regions_.back()->body.push_back({std::move(branch), results});
  return results;
}

}  // namespace chainfold::codegen
