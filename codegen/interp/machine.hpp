// The interpreter's machine: one warp that executes a launch's body step by step.
//
// A warp holds its values and a stack of frames, nothing of the host's stack, so it can be left and
// resumed at any instruction.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "chainfold/codegen/interp/memory.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

struct BlockState;

/// What all warps of one launch share: the code, where each value lives, global memory, parameters.
struct LaunchContext {
  LaunchContext(const Program& program, int launch_index, std::vector<GlobalArray>& buffers,
                std::span<const std::uint64_t> params, const InterpOptions& options);

  const Program& program;
  const Launch& launch;
  std::vector<GlobalArray>& buffers;
  std::span<const std::uint64_t> params;
  int arch;
  std::span<const std::int64_t> chosen;  ///< InterpOptions::blocks
  std::uint32_t number;                  ///< of the launch, from 1
  std::vector<std::size_t> offset;       ///< of each value of this launch in Warp::values
  std::size_t value_words = 0;
  bool streams = false;        ///< Builtin::streams
  std::uint64_t accesses = 0;  ///< instructions that touched memory so far
  /// What atomic operations on an element (buffer, index) have made visible.
  std::map<std::pair<int, std::int64_t>, Seen> released;
  /// Who published a slot (buffer, index) first, under which ticket and with which of its accesses.
  struct Publication {
    std::int64_t ticket = 0, warp = 0;
    std::uint64_t access = 0;
    std::vector<Bits> values{};
    bool helped = false;  ///< by others alone so far
  };
  std::map<std::pair<int, std::int64_t>, Publication> published;
  std::map<int, std::int64_t> tickets;  ///< taken so far, by counter
  /// Where the blocks of a cluster gather.
  struct Meeting {
    std::vector<BlockState*> blocks;
    std::vector<std::vector<Bits>> values;  ///< that each block has handed over
    int warps = 0;                          ///< of all its blocks that have come
  };
  std::map<std::int64_t, Meeting> meetings;  ///< by cluster
  /// Warps of a cluster.
  [[nodiscard]] int cluster_warps() const { return launch.cluster * launch.warps; }

 private:
  /// Launch::non_temporal of these buffers and parameters.
  [[nodiscard]] bool passes_caches() const;
  void place(ValueId id);
  void place_region(const Region& region);
};

/// One slot of a ring: the copies that were started and that have arrived. A copy arrives as late
/// as the rules allow, when its warp waits for it.
struct CopySlot {
  int warp = -1;  ///< that owns it: the first to use it
  std::int64_t started = 0, arrived = 0;
  int buffer = 0, array = 0;
  std::int64_t from = 0, to = 0, elements = 0;  ///< of the copy under way
  std::int64_t begin = 0, limit = 0;            ///< elements that it touches
};

/// A copy out under way. It reads its source as soon or as late as it likes, so that must not
/// change. It stores when it is waited for.
struct Outgoing {
  int buffer = 0, array = 0;
  std::int64_t from = 0, to = 0;
  std::vector<Bits> values;  ///< of the source when it began
};

/// The state of one block.
struct BlockState {
  std::int64_t index = 0;
  std::uint32_t epoch = 0;  ///< barriers passed
  std::int64_t ticket = 0;  ///< the last one taken
  bool has_ticket = false;  ///< where only some blocks run
  std::vector<SharedMemory> shared;
  std::vector<std::vector<CopySlot>> rings;
};

enum class WarpStatus : std::uint8_t { ready, at_barrier, waiting, done };

class Warp {
 public:
  /// Starts warp `index` of `block`; reuses this object's memory. Both must outlive the run.
  void start(LaunchContext& context, BlockState& block, int index);
  /// Executes one instruction, or ends one trip of a region. Needs status ready.
  void step();
  [[nodiscard]] WarpStatus status() const { return status_; }
  [[nodiscard]] const Instr* barrier() const { return barrier_; }  ///< where it waits
  /// Takes the block's next ticket if the barrier at which this warp waits is a Ticket.
  void take_ticket();
  void pass_barrier();
  /// Makes a waiting warp ready to look again, if anything was published since it looked, or all of
  /// its cluster have come.
  void look_again();
  /// Throws InternalError that names what a waiting warp misses.
  [[noreturn]] void fail_waiting() const;
  [[nodiscard]] int index() const { return index_; }
  /// Throws InternalError that names launch, block, warp and the instruction at hand.
  [[noreturn]] void fail(std::string_view problem, int lane = -1) const;

 private:
  struct Frame {
    const Region* region = nullptr;
    const Instr* owner = nullptr;  // For or If; null for the body
    std::size_t next = 0;
    std::int64_t index = 0, hi = 0, step = 0;
  };
  // A value seen lane by lane: a uniform or width-1 value counts everywhere.
  struct View {
    const Bits* data;
    std::size_t lane_stride, element_stride;
    Bits at(std::size_t lane, std::size_t element) const {
      return data[lane * lane_stride + element * element_stride];
    }
  };

  Bits* slot(ValueId id) { return values_.data() + context_->offset[id]; }
  [[nodiscard]] const Bits* slot(ValueId id) const { return values_.data() + context_->offset[id]; }
  [[nodiscard]] const Type& type(ValueId id) const { return context_->program.type(id); }
  [[nodiscard]] std::size_t words(ValueId id) const;
  [[nodiscard]] View view(ValueId id) const;
  [[nodiscard]] std::int64_t integer(ValueId id) const {
    return static_cast<std::int64_t>(*slot(id));
  }
  [[nodiscard]] std::int64_t own_offset(ValueId offset, std::size_t lane) const;
  void copy(std::span<const ValueId> from, std::span<const ValueId> to);
  void end_region();

  void execute(const Const& op, const Instr& instr);
  void execute(const Special& op, const Instr& instr);
  void execute(const ParamRef& op, const Instr& instr);
  void execute(const Load& op, const Instr& instr);
  void execute(const Store& op, const Instr& instr);
  void execute(const AtomicAdd& op, const Instr& instr);
  void execute(const SharedLoad& op, const Instr& instr);
  void execute(const SharedStore& op, const Instr& instr);
  void execute(const Compute& op, const Instr& instr);
  void execute(const Splat& op, const Instr& instr);
  void execute(const Extract& op, const Instr& instr);
  void execute(const Concat& op, const Instr& instr);
  void execute(const Shuffle& op, const Instr& instr);
  void execute(const Permute& op, const Instr& instr);
  void execute(const Funnel& op, const Instr& instr);
  void execute(const Vote& op, const Instr& instr);
  void execute(const ConstFragment& op, const Instr& instr);
  void execute(const Pack& op, const Instr& instr);
  void execute(const Mma& op, const Instr& instr);
  void execute(const Barrier& op, const Instr& instr);
  void execute(const WaitForLaunch&, const Instr&) {}  // launches follow each other here
  void execute(const LetNextStart&, const Instr&) {}
  void execute(const Misalignment& op, const Instr& instr);
  void execute(const CopyAsync& op, const Instr& instr);
  void execute(const CopyWait& op, const Instr& instr);
  void execute(const CopyOut& op, const Instr& instr);
  void execute(const CopyOutWait& op, const Instr& instr);
  void execute(const Ticket& op, const Instr& instr);
  void execute(const Publish& op, const Instr& instr);
  void execute(const Await& op, const Instr& instr);
  void execute(const Overdue& op, const Instr& instr);
  /// Whether a block, which takes the ticket of its number, does not run (InterpOptions::blocks).
  [[nodiscard]] bool left_out(std::int64_t block) const;
  void execute(const Gather& op, const Instr& instr);
  void execute(const For& op, const Instr& instr);
  void execute(const If& op, const Instr& instr);

  LaunchContext::Meeting& meeting();
  /// Of the next access of this warp.
  Accessor accessor();
  template <class Array, class F>
  void for_each_place(Array& array, const Address& at, ValueId mask, const Type& type,
                      bool anywhere, F&& fn);
  template <class Array>
  void read(Array& array, const Address& at, ValueId mask, ValueId result, bool input = false);
  template <class Array>
  void write(Array& array, const Address& at, ValueId mask, ValueId value, bool anywhere);
  [[nodiscard]] std::int64_t misalignment(int buffer, ValueId first, int unit) const;
  CopySlot& copy_slot(int ring, ValueId slot);
  /// Fails unless this warp may touch a counter or slot now.
  GlobalArray& check_word(int buffer, std::int64_t element, const Accessor& who);
  /// Fails if a copy that this warp started has not been waited for.
  void check_copies() const;
  /// Sources from 32 on are lanes of `other`.
  void gather_lanes(ValueId from, ValueId other, ValueId to, std::span<const std::uint8_t> source);

  LaunchContext* context_ = nullptr;
  BlockState* block_ = nullptr;
  int index_ = 0;
  WarpStatus status_ = WarpStatus::done;
  const Instr* barrier_ = nullptr;
  const Instr* current_ = nullptr;
  Seen seen_;
  bool gathers_ = false;               // waits for the other warps of its cluster
  std::vector<std::int64_t> missing_;  // slots that it waits for
  std::vector<Outgoing> outgoing_;
  std::size_t publications_ = 0;  // when it looked last
  std::vector<Frame> frames_;
  std::vector<Bits> values_;   // lane-major: element e of lane l of a value at [l * width + e]
  std::vector<Bits> staging_;  // yields on their way to carried values
};

}  // namespace chainfold::codegen
