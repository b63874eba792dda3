// Program: the launches of one kernel in full, lane-accurate. It has one meaning and several
// executors: the interpreter (interp/interp.hpp, the definition), CUDA text (emit/cuda/cuda.hpp)
// and LLVM text (emit/llvm/llvm.hpp).
//
// Semantics
// - A program runs its launches in order; each runs `grid` thread blocks of `warps` warps, each of
//   kWarpWidth lanes. Blocks of a launch are independent: any order, any number at once. All stores
//   of a launch are visible to the next.
// - A value is `uniform` (one for the warp), `lane` (one a lane) or a `fragment` of a matrix
//   instruction. A value of width w > 1 is a short vector of w elements a lane (or uniform).
// - Regions are straight-line lists of SSA instructions with structured control. A value is visible
//   in its region after its definition and in the regions nested there. There is no divergent
//   branch: lanes differ by masks. Every warp of a block runs the whole body. Conditions and bounds
//   are uniform, and around a barrier they must be the same for all warps of the block.
// - Elementwise operations follow base/ops.hpp. A uniform operand beside a lane operand counts for
//   every lane, and a width-1 operand beside a wide one for every element. Executors agree bit for
//   bit, with two exceptions. One are functions that may err (op_table.inc). The other is float
//   mma, which agrees within its row's bound, and exactly on data whose sums are exact.
// - Addresses: Load and Store touch `width` consecutive elements for each lane l of the warp. These
//   start at base + (l / group) * stride + (l % group) * width. The base is uniform, and the stride
//   is a constant or a uniform value (`step`). With group = 32 that is one contiguous run a warp.
//   Lanes whose mask is false touch nothing and load zeros. The mask of a Load may be as wide as
//   what it loads; then elements whose mask is false touch nothing and are zeros. That needs a
//   target that accesses memory anywhere. A uniform Load reads the one element run at base, and a
//   Store of a uniform value writes it.
//   Accesses of width w need addresses aligned to w * size bytes, which the lowering guarantees
//   from the buffer's declared alignment. Those of buffers need none where the program's
//   `accesses_anywhere` says so of its target. No two lanes of one store touch the same element.
//   Accesses of shared arrays, and loads and stores of single elements, may add an offset of each
//   lane's own.
// - Within a launch an element is accessed either by atomic operations or by others. Lanes add in
//   any order, so sums of floats differ from run to run. What a block stored before an
//   acquire_release operation may be read by the warp that has seen it by another on the same
//   element.
// - Blocks of a launch wait for each other by tickets alone. Ticket numbers blocks in the order in
//   which they come to it. Publish marks a slot, and Await waits for slots that were published
//   under lower tickets than the block's own. A slot may carry values, which arrive with its mark,
//   and then nothing else does. A slot that carries none orders memory: what a warp stored before
//   it published the slot may be read by the warps that awaited it. No other warp of another block
//   may read that. Counters and slots are scratch that the launch finds zero and accesses in no
//   other way. A block may look whether a slot that carries values is there (Overdue), and publish
//   it for another one (helps).
// - The blocks of a launch form clusters of `cluster` blocks whose numbers follow each other; the
//   grid is a multiple. Blocks of a cluster run at the same time, and Gather alone lets them see
//   anything of each other.
// - Shared arrays live for one block; they are uninitialised at its start. Warps of a block see
//   each other's shared stores only after a barrier.
// - Copies from a buffer to a shared array run beside the warp that started them. A copy belongs to
//   a slot of a ring; a slot belongs to one warp and has at most one copy under way. CopyAsync
//   starts the slot's next copy, behind all earlier accesses of its warp to the destination.
//   CopyWait waits for the slot's copy number `round` (counted from 0), which must be the one
//   started last. Between the two the destination must not be touched. Nothing may be under way
//   when a warp ends.
// - Copies the other way (CopyOut), from a shared array to an output, run beside their warp, too,
//   behind all its earlier accesses to both. CopyOutWait waits until all that the warp has started
//   have read their source, which must not be written before. The elements of the output are
//   accessed in no other way from the start to the launch's end.
// - Program parameters are uniform scalars in 8-byte slots: the buffers' pointers first, then
//   `params`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chainfold/codegen/base/machine.hpp"
#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/size_expr.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/target/const_matrix.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

enum class Shape : std::uint8_t { uniform, lane, fragment };

/// The type of a value. For fragments: the MMA row and operand; `elem` is then the row's element
/// type.
struct Type {
  DType elem = DType::i64;
  Shape shape = Shape::uniform;
  std::int16_t width = 1;  ///< elements (a lane); for fragments the row's elements(operand)
  std::int16_t mma_row = -1;
  Operand operand = Operand::a;
  friend bool operator==(const Type&, const Type&) = default;
};
Type uniform(DType elem);
Type lane(DType elem, int width = 1);
Type fragment(int mma_row, Operand operand);

using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = ~ValueId{0};

struct Instr;
/// A list of instructions and the values it hands to what contains it.
struct Region {
  std::vector<Instr> body;
  std::vector<ValueId> yields;
};

// --- the operations; each has `results` given by Instr
// ------------------------------------------------

struct Const {
  Bits bits = 0;
};  ///< uniform scalar; its type says which
/// streams: whether the stores with Store::streams are non-temporal in this launch
/// (Launch::non_temporal).
enum class Builtin : std::uint8_t { block, warp, lane, streams };
struct Special {
  Builtin which;
};  ///< block: uniform i64; warp: uniform i32; lane: lane i32; streams: uniform boolean
struct ParamRef {
  int index = 0;
};  ///< uniform, of the parameter's type
struct Address {
  ValueId base = kNoValue;
  std::int32_t group = kWarpWidth;
  std::int64_t stride = 0;
  ValueId offset = kNoValue;  ///< lane i32 or i64: elements further for each lane; shared arrays,
                              ///< and single elements
  ValueId step = kNoValue;    ///< uniform i64: the stride where it is known at launch
};
struct Load {
  int buffer = 0;
  Address at;
  ValueId mask = kNoValue;
  /// A hint: the elements that lie so many (uniform i64) behind these will be read soon. Nothing
  /// need be there.
  ValueId ahead = kNoValue;
  bool evict_first =
      false;  ///< a hint: hardly any other load takes something of the lines that it takes
};
struct Store {
  int buffer = 0;
  Address at;
  ValueId mask = kNoValue;
  ValueId value = kNoValue;
  bool streams = false;  ///< of whole lines; non-temporal in launches that say so (Builtin)
};
/// acquire_release: what the lane did before is visible to whom an acquire_release on the same
/// element shows this one. Of the whole device either way.
enum class AtomicOrder : std::uint8_t { relaxed, acquire_release };
/// Each lane adds its value to its element, in one step that no other lane's comes between; several
/// lanes may name one element. The result is what was there before, 0 in lanes that are off.
struct AtomicAdd {
  int buffer = 0;
  Address at;
  ValueId mask = kNoValue;
  ValueId value = kNoValue;
  AtomicOrder order = AtomicOrder::relaxed;
};
struct SharedLoad {
  int array = 0;
  Address at;
  ValueId mask = kNoValue;
};
struct SharedStore {
  int array = 0;
  Address at;
  ValueId mask = kNoValue;
  ValueId value = kNoValue;
};
struct Compute {
  Op op;
  std::vector<ValueId> operands;
};  ///< elementwise (base/ops.hpp)
struct Splat {
  ValueId value;
};  ///< uniform to lane
struct Extract {
  ValueId value;
  int first = 0;
};  ///< `width` elements from `first` on, of a vector or of a C fragment
struct Concat {
  std::vector<ValueId> parts;
};  ///< a wider vector out of scalars and vectors
enum class ShuffleKind : std::uint8_t { xor_mask, from_lane, up, down, first };
/// Every lane l receives the value of another lane. With xor_mask that is lane l ^ mask; with
/// from_lane, the lane that `source` (lane i32) names modulo 32. With up it is lane l - mask, with
/// down lane l + mask. A lane that has no such neighbour keeps its own value.
/// The result of `first` is uniform, lane 0's value.
struct Shuffle {
  ShuffleKind kind;
  ValueId value;
  int mask = 0;
  ValueId source = kNoValue;
};
/// Every lane receives the value of the lane that a constant table names. Sources 0 to 31 are lanes
/// of `value`, 32 to 63 of `other`, if there is one.
struct Permute {
  ValueId value;
  std::vector<std::uint8_t> source;
  ValueId other = kNoValue;
};
/// A funnel shift: as many elements as `low` has, from element `from` (i32, below that number) on
/// of `low` and `high` one behind the other. Each is a word of 32 bits of narrower elements that
/// are no booleans.
struct Funnel {
  ValueId low, high, from;
};
enum class VoteKind : std::uint8_t { any, all, count };
struct Vote {
  VoteKind kind;
  ValueId value;
};  ///< lane boolean to uniform boolean; count: how many lanes are true, uniform i32
struct ConstFragment {
  ConstMatrix matrix;
};  ///< its type says the row and the operand
/// A fragment out of vectors of the row's input type that fill its elements in order; kNoValue with
/// a count stands for that many zeros.
struct Pack {
  std::vector<std::pair<ValueId, int>> pieces;
};
struct Mma {
  ValueId a, b, c;
};  ///< a fragment C of the row
struct Barrier {};  ///< all warps of the block
/// The launch before has ended, and what it stored is there. In the first launch of a program it is
/// whatever ran on the stream before that has ended. It stands once in each launch that overlaps,
/// outside of loops and branches. Before it a block touches nothing but inputs that do not change.
/// Where the first launch overlaps, no launch touches anything before it. Blocks that need nothing
/// of the launch before wait all the same. So a third launch knows by the end of the second that
/// the first has ended, too.
struct WaitForLaunch {};
/// Blocks of the next launch may start once all of this one have come here or ended. It stands at
/// most once, outside of loops and branches, and only where there is a next launch, which overlaps.
/// In a first launch that overlaps it stands behind the WaitForLaunch.
struct LetNextStart {};
/// Elements between the last boundary of memory at or before element `first` of a buffer and that
/// element; there is a boundary every `unit` bytes. Uniform i64, 0 to unit / size - 1.
struct Misalignment {
  int buffer = 0;
  ValueId first = kNoValue;
  int unit = 16;
};
/// Copies `elements` elements of an input, from the last boundary (as above) at or before element
/// `first` on, to element `to` of a shared array. Both sides lie on 16 bytes. What is not among the
/// input's elements [begin, limit) is not touched: anything arrives in its place, and no result may
/// depend on it. Programs in place name a `begin`, since what lies beside their own elements
/// another block may be storing.
struct CopyAsync {
  int buffer = 0;
  ValueId first = kNoValue;
  int unit = 16;
  int array = 0;
  ValueId to = kNoValue;
  int elements = 0;
  ValueId begin = kNoValue;  ///< kNoValue: element 0
  ValueId limit = kNoValue;
  bool whole = false;  ///< `begin` and `limit` lie on 16 bytes
  /// The warp has loaded from there what it may not have computed with yet. Only then does a copy
  /// engine have to be made to wait for loads.
  bool behind_loads = false;
  int ring = 0;
  ValueId slot = kNoValue;
};
struct CopyWait {
  int ring = 0;
  ValueId slot = kNoValue;
  ValueId round = kNoValue;
};
/// Copies `elements` elements of a shared array, from element `from` on, to an output from element
/// `first` on (uniform i64). Both sides lie on 16 bytes, and it is of whole units of so many. Only
/// in launches whose copies are the engine's (Launch::bulk_copies).
struct CopyOut {
  int buffer = 0;
  ValueId first = kNoValue;
  int array = 0;
  ValueId from = kNoValue;
  int elements = 0;
};
struct CopyOutWait {};
/// The block's next ticket, a uniform i64 that is the same for all its warps. It is the number of
/// tickets that the blocks of this launch have taken from the counter before. All warps of the
/// block come to it, and it is a barrier; a block may take several. The counter is element 0 of a
/// scratch buffer of i64.
struct Ticket {
  int counter = 0;
};
/// The warp marks slot `slot` (uniform i64) as published under `ticket`, which its block has taken.
/// With `values` (of width 1, lane 0's count) the slot is a record (RecordLayout) of a scratch
/// buffer of i64 and carries them. Without, it is an element of a scratch buffer of i32. Then what
/// this warp stored before may be read by warps that awaited the slot. A slot is published at most
/// once a launch, but others may publish it, too (`helps`). A warp that helps has the same values
/// to the bit, and names the ticket of the block whose slot it is.
struct Publish {
  int flags = 0;
  ValueId slot = kNoValue;
  ValueId ticket = kNoValue;
  std::vector<ValueId> values{};
  bool helps = false;
};
/// The warp waits for the slots first + l, l < count <= 32 (all uniform i64). Slot first + l is
/// published under ticket publisher + l * stride. Slots whose publisher is not below `ticket`, a
/// ticket that the block has taken, are not waited for. The results are what the slots carry. Lane
/// l has those of slot first + l, and zeros where there is no slot that was waited for.
///
/// Every wait ends, however few blocks run at once and in whatever order they start. By induction
/// over tickets, every Publish under ticket t takes place: its block has started. Until then, its
/// warps wait at barriers for each other, and in the Awaits that stand before the Publish on a path
/// to it. The tickets of those Awaits are at most t, so that they wait for tickets below t. A block
/// may hold later tickets already, as long as it does not wait under them. The verifier demands
/// what this rests on, and the interpreter that the named tickets are the publishers.
struct Await {
  int flags = 0;
  ValueId first = kNoValue, count = kNoValue;
  ValueId ticket = kNoValue;
  ValueId publisher = kNoValue, stride = kNoValue;
};
/// Looks at slots that carry values, as an Await does, but at each only `looks` times. The result
/// (uniform i64) is the number l of the first slot that was not published then. Where there is
/// none, it is `count`. Which one it finds depends on how blocks happen to run, and no result of a
/// launch may depend on it. It is no wait. What follows may publish the slot on behalf of the block
/// that is late, because its thread is not running, say.
struct Overdue {
  int flags = 0;
  ValueId first = kNoValue, count = kNoValue;
  ValueId ticket = kNoValue;
  ValueId publisher = kNoValue, stride = kNoValue;
  int looks = 1;
  std::vector<DType> types{};  ///< what a slot carries
};
/// The blocks of a cluster exchange values (of width 1): each hands over what its first warp has in
/// lane 0. Lane l of every warp receives those of the cluster's block number l, zeros where there
/// is none. All warps of all blocks of the cluster come to it, and it is a barrier of each block.
/// It stands at most once in a launch, outside of loops and branches.
struct Gather {
  std::vector<ValueId> values;
};
/// A loop with carried values: for (index = lo; index < hi; index += step). Index and bounds are
/// uniform and of one type, i64 or i32, which the last index + step does not leave.
struct For {
  ValueId lo, hi, step;
  ValueId index;                 ///< defined in the body
  std::vector<ValueId> init;     ///< one a result
  std::vector<ValueId> carried;  ///< defined in the body; same types as the results
  Region body;                   ///< yields the next carried values
  bool few = false;              ///< a hint: trips are few, and nothing foretells how many
};
struct If {
  ValueId condition;            ///< uniform boolean
  Region then_body, else_body;  ///< both yield one value a result
};

using Operation =
    std::variant<Const, Special, ParamRef, Load, Store, AtomicAdd, SharedLoad, SharedStore, Compute,
                 Splat, Extract, Concat, Shuffle, Permute, Funnel, Vote, ConstFragment, Pack, Mma,
                 Barrier, WaitForLaunch, LetNextStart, Misalignment, CopyAsync, CopyWait, CopyOut,
                 CopyOutWait, Ticket, Publish, Await, Overdue, Gather, For, If>;

struct Instr {
  Operation op;
  std::vector<ValueId> results;
};

// --- the program
// ---------------------------------------------------------------------------------------

/// Why a parameter exists; the runtime fills it by this.
enum class ParamRole : std::uint8_t {
  segments,       ///< segments of this launch
  elements,       ///< elements of the whole input (absolute, also when a chunk of it is at hand)
  origin,         ///< the element index at which the input buffers begin; of columns, the row
  part_begin,     ///< the first part of this launch
  part_end,       ///< one behind the last part of this launch
  parts,          ///< parts a segment
  part_length,    ///< elements a part (the last of a segment may be shorter); of columns, rows
  rows,           ///< columns: elements of each, absolute
  stride,         ///< elements between the beginnings of rows; `index` says of which input
  first_bit,      ///< of a packed input (`index`) the bit of its first byte at which it begins
  literal,        ///< a literal of the expression; `index` says which
  user,           ///< a param<T> of the expression; `index` says which
  has_carry_in,   ///< 1 where scans go on from a state that the launch brings, else 0
  has_carry_out,  ///< 1 where the launch takes the state that scans end with, else 0
  room,           ///< values that an output has room for; `index` says of which
  has_status,     ///< 1 where the launch has memory for what it tells, else 0
  size,           ///< Param::size, which every block would else compute anew
};
struct Param {
  std::string name;
  DType type = DType::i64;
  ParamRole role = ParamRole::segments;
  int index = 0;
  SizeExpr size = 0;  ///< of role size: of parameters before this one
};

/// carry_in and carry_out hold one element, a field of a fold's state: `index` counts the fields of
/// all folds in their order. They may be touched only where has_carry_in and has_carry_out say so.
/// The inputs are those of the graph, and behind them the bounds of its partition. `status` holds
/// i64, the fields of LaunchStatus (runtime/launch/status.hpp); it may be touched only where
/// has_status says so.
enum class BufferRole : std::uint8_t { input, output, scratch, carry_in, carry_out, status };
struct Buffer {
  std::string name;
  DType type = DType::f32;
  BufferRole role = BufferRole::input;
  int index = 0;      ///< which input, output, scratch array or carried field
  int alignment = 1;  ///< bytes that the pointer is a multiple of
  SizeExpr elements;  ///< scratch arrays only: how many elements it needs
  /// An input of booleans whose elements are bits: element i is bit i % 8 of byte i / 8, the lowest
  /// one first. Loads alone access it. They may begin at any bit, and touch no byte of which they
  /// load nothing.
  bool packed = false;
};

struct SharedArray {
  std::string name;
  DType type = DType::f32;
  int elements = 0;
};

/// Slots for copies under way.
struct CopyRing {
  std::string name;
  int slots = 0;
};

/// When stores with Store::streams are non-temporal: where the caches would not keep what is stored
/// anyway. The buffers that they store to have `param` times `factor` elements. Each of them must
/// be large, lie in none of the inputs' memory, and have its lines of kLineBytes where `along`
/// says.
struct NonTemporalStores {
  std::int64_t from = 0;  ///< bytes from which on a buffer is worth it; 0: none is
  int param = 0;
  std::int64_t factor = 1;
  /// The narrowest of the buffers, in which lines may begin at any element. In the other buffers
  /// they begin at the same elements. With -1 all buffers begin with a line.
  int along = -1;
  /// Bytes of such a buffer from which loads of inputs have evict-last hints: loads of 16 bytes
  /// a lane, and those by the copy engine. A shared cache then gives up what is stored before it
  /// gives up those lines, so that memory gets stores in longer runs. 0: never.
  std::int64_t evict_last_from = 0;
  int evict_last_unit = 1;  ///< bytes an element of the widest of them
};

/// The order in which a CPU's thread takes the blocks of its range. A range of `least` blocks and
/// more is `count` (a power of two) interleaved streams, at places far apart. Blocks are taken from
/// each in turn, so that memory's prefetchers have several runs to follow. A shorter range is taken
/// in order. The meaning is the same.
struct InterleavedStreams {
  int count = 1;
  std::int64_t least = 0;
};

struct Launch {
  std::string name;    ///< the kernel's symbol, e.g. "fold_rows"
  SizeExpr grid;       ///< blocks; over `params` of the program
  int warps = 1;       ///< warps a block
  int min_blocks = 0;  ///< wanted occupancy, blocks a multiprocessor; 0: no wish
  /// The first so many blocks do most; those behind them start when others have ended. 0: all
  /// blocks do about as much. For estimates.
  std::int64_t lasting = 0;
  std::vector<SharedArray> shared{};
  std::vector<CopyRing> rings{};
  /// Its blocks may start while the launch before it still runs, or, of the first launch, the
  /// kernel before it on the stream. They wait for its end where WaitForLaunch stands, and the
  /// meaning is the same. What that saves is the time between the two, and that of what they do
  /// until then.
  bool overlaps = false;
  /// Blocks that a CPU's thread takes at least: fewer are not worth another thread. With 0 blocks
  /// stay and share the work out among themselves. A thread then takes one, and one alone would do
  /// all.
  std::int64_t grain = 1;
  bool bulk_copies = false;  ///< copies are made by the copy engine, not by lanes
  /// A CPU may compute by vectors of half its registers' bits (PlanHints::half_vectors). The
  /// meaning is the same.
  bool half_vectors = false;
  InterleavedStreams streams{};
  int cluster = 1;  ///< blocks a cluster
  NonTemporalStores non_temporal{};
  Region body{};
};

/// Where a launch's shared memory lies, in bytes from the start of the block's. First come the
/// arrays in declared order, each on a 16-byte boundary, and behind them the rings (8 bytes a
/// slot). Then comes the word through which the warps of a block learn its ticket. Last come the
/// words in which a block hands over what a Gather names (8 bytes a value).
struct SharedLayout {
  std::vector<std::int64_t> arrays, rings;
  std::int64_t ticket = -1;  ///< -1: the launch takes none, or its blocks are one warp
  std::int64_t gather = -1;  ///< -1: the launch has none
  std::int64_t bytes = 0;
};
SharedLayout shared_layout(const Launch& launch);

/// Where the values that a slot carries lie in its record: words of 16 bytes, of which 8 are
/// payload and 8 the mark. A word is stored and loaded in one piece, so each is whole once its mark
/// is there, and no order among words is needed. A value has 4 bytes of payload, or 8.
struct RecordLayout {
  struct Field {
    int word = 0;
    int shift = 0;  ///< bits within the payload
  };
  std::vector<Field> fields;
  int words = 0;
  /// Elements (i64) of the buffer that a slot takes; words begin at even ones.
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{2} * words; }
};
RecordLayout record_layout(const std::vector<DType>& types);

struct Program {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Param> params;
  std::vector<Launch> launches;
  std::vector<Type> values;  ///< the type of each ValueId, over all launches
  /// Outputs may lie in the memory of inputs. Then every element of an input is loaded before it is
  /// stored. The same warp does both, or a barrier or the end of a launch stands between.
  bool in_place = false;
  bool accesses_anywhere = false;  ///< of buffers, wide ones may lie off their width (Target)

  [[nodiscard]] const Type& type(ValueId id) const { return values[id]; }
};
/// Of the slots that a Publish or an Await names.
RecordLayout record_layout(const Program& program, const std::vector<ValueId>& values);

/// Calls fn(ValueId&) for every operand of `op`, nested regions excluded.
template <class F>
void for_each_operand(Operation& op, F&& fn);
/// Calls fn(Region&) for every region directly inside `op`.
template <class F>
void for_each_region(Operation& op, F&& fn);
/// The same for reading: fn(ValueId) and fn(const Region&).
template <class F>
void for_each_operand(const Operation& op, F&& fn);
template <class F>
void for_each_region(const Operation& op, F&& fn);

}  // namespace chainfold::codegen

#include "chainfold/codegen/program/visit.hpp"
