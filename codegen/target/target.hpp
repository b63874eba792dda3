// Target: what a machine can do, as data. Lowerings and plans ask these fields and never which
// machine it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace chainfold::codegen {

/// Which executor turns a program for this target into code.
enum class Backend : std::uint8_t { cuda, llvm };

/// Rates of a multiprocessor, or of a CPU's thread, for estimates (estimate.hpp): within a third
/// for a typical device.
struct TargetRates {
  int issue = 4;               ///< instructions of warps that it issues a cycle
  int pipe_slots = 4;          ///< of these while 128 bytes pass the pipe for loads and shuffles
  double bytes_per_cycle = 0;  ///< its share of memory's rate
  int bytes_ahead = 0;         ///< loads under way that keep memory busy; 0: caches look ahead
  int registers = 0;           ///< of 32 bits, for all its threads; 0: they limit nothing
  int launch_cycles = 0;       ///< that a launch costs at least
};

/// Bytes that a CPU's block may have for its shared arrays: a thread keeps as many.
inline constexpr int kCpuArrayBytes = 64 * 1024;

/// Bytes of a multiprocessor's shared memory that the system keeps for each block, from sm_80 on.
inline constexpr int kReservedShared = 1024;

struct Target {
  std::string name;  ///< "sm_90" or "cpu"
  Backend backend = Backend::cuda;
  int arch = 0;           ///< 75, 80, 86, 89, 90, 100, 120; 0 for a CPU
  int processors = 1;     ///< multiprocessors, or threads
  int vector_bytes = 16;  ///< bytes a lane loads at once at most (a CPU lane: one element, 0)
  bool accesses_anywhere = false;  ///< wide loads and stores may lie off their width
  /// Lanes load words where that helps, whatever vector_bytes says. The halves of two bf16 take one
  /// operation each to become floats, where an element by itself takes two. The sum of four 8-bit
  /// integers takes one or two operations in all.
  bool words = false;
  /// Words of two f16, too, are worth taking apart and putting together, for what comes between.
  bool f16_words = false;
  /// Floats of up to 4 bytes are put in order as integers where that helps. The minimum of two
  /// integers is one operation, that of two floats several (NaN, zeros of both signs). That of two
  /// f16 takes their conversions as well.
  bool integer_order = false;
  /// Lanes compute with 32 bits, whatever a narrower integer has.
  bool lane_words = false;
  int max_warps = 32;                      ///< warps a block at most
  int resident_warps = 64;                 ///< warps a multiprocessor holds at once
  int shared_bytes = 48 * 1024;            ///< shared memory a block may have at most
  int processor_shared_bytes = 48 * 1024;  ///< that of a multiprocessor, for all its blocks
  bool async_copies = false;               ///< copies to shared memory beside a warp's own work
  bool overlaps = false;                   ///< a launch may start while the one before it ends
  bool bulk_copies = false;                ///< the same by an engine that takes whole runs
  int cluster_blocks = 1;                  ///< blocks that see each other's shared memory at most
  /// Lanes are elements of vectors. A constant pattern of lanes costs more the more registers each
  /// of its results takes lanes from. An operation in some lanes alone costs no more than in all.
  bool vector_lanes = false;
  int register_bytes = 0;       ///< where lanes are such elements: of all of a thread's vectors
  bool wide_sums = false;       ///< f64 are added at half the rate of f32 or more
  bool has_mma = true;          ///< whether the table's rows from `arch` down apply
  int loads_in_flight = 16;     ///< independent loads worth issuing before their first use
  int min_loads_in_flight = 8;  ///< the same where each load feeds much code
  int row_loads = 4;            ///< loads of short segments that a lane handles at once
  std::int64_t non_temporal_bytes = 0;  ///< outputs from which stores are non-temporal; 0: none
  int interleaved_streams =
      1;  ///< streams of memory that a thread had best read in turn; a power of two
  /// Bytes behind those that it loads from memory for which a thread had best ask; 0: it had better
  /// not.
  int ahead_bytes = 0;
  /// Scans: bytes of a tile that is read twice, the second time from a core's own cache.
  int tile_bytes = 0;
  /// Bytes of an output from which on evict-last hints on loads pay, as stores then leave the
  /// second-level cache sooner; 0: never.
  std::int64_t evict_last_bytes = 0;
  /// Bytes of a line on which loads can have an evict-first hint to the first-level cache; 0: they
  /// cannot.
  int evict_first_bytes = 0;
  TargetRates rates{};

  /// Whether blocks are one warp each, a CPU's. Shared arrays are then memory of its thread.
  [[nodiscard]] bool is_cpu() const { return max_warps == 1; }
  /// Bytes of shared memory that each of `blocks` blocks of a multiprocessor has at most, from
  /// sm_80 on.
  [[nodiscard]] std::int64_t shared_of(int blocks) const {
    return processor_shared_bytes / blocks - kReservedShared;
  }
  /// Whether a block may have so many bytes of it where a multiprocessor is to hold so many (0:
  /// any).
  [[nodiscard]] bool fits_shared(std::int64_t bytes, int blocks) const {
    return bytes <= shared_bytes && (blocks == 0 || bytes <= shared_of(blocks));
  }
};

/// A GPU of architecture `arch` with a typical number of multiprocessors. Throws UserError for an
/// architecture below 75 or unknown.
Target gpu_target(int arch, int processors = 0);
/// The CPU with `threads` threads, and what is known of its `processor` as LLVM calls it
/// ("znver4"); of others, and of none, nothing is. Its vectors have up to `vector_bits` bits.
Target cpu_target(int threads, std::string_view processor = {}, int vector_bits = 512);
/// "sm_90", "sm_90a" or "cpu". Throws UserError naming what is known.
Target parse_target(std::string_view name);

}  // namespace chainfold::codegen
