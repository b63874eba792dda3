// PlanChoice: the decisions of a plan that change nothing but speed.
//
// Everything else about a plan (widths, units, edges, guard, bound) follows from the graph, the
// target and the request (make.hpp). A choice has a text, so that it can be recorded and pinned.
// Choices of folds do not depend on the alignment of pointers, so that one serves every launch of a
// segment size. A choice of scans may be legal for wide loads alone.
#pragma once

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

struct PlanChoice {
  Strategy strategy = Strategy::rows;
  int warps = 1;   ///< a block
  int depth = 1;   ///< loads of each input along a segment before their first use, at most;
                   ///< elements: of a lane
  int rows = 1;    ///< rows, staged: segments that a group of lanes handles at once;
                   ///< columns: runs of columns that a warp handles at once
  int lanes = 0;   ///< rows, staged: lanes that share a segment; rows: 0: those of one load
  int stages = 0;  ///< staged, look_ahead: tiles of a warp in shared memory; a CPU's: one more than
                   ///< those that a thread takes before it scans one
  int staged = 0;  ///< look_back: of the depth, loads that come through shared memory
  int heads = 0;   ///< look_back: 1: tiles of all segments, which begin anywhere in them
  int window = 0;  ///< look_back, a CPU's look_ahead: the look-back window, groups of tiles before
                   ///< the own one that are looked at tile by tile
  int blocked = 0;      ///< look_back: 1: runs in a blocked arrangement, copied in and out
  int interleaved = 0;  ///< look_back: segments with interleaved tickets; 0: one after the other
  int direct = 0;       ///< propagate: 1: every tile folds the states before it itself
  int cluster = 0;      ///< parts: a segment's are blocks of one cluster, in one launch; 0: none
  int store_batch = 0;  ///< staged: tiles of a warp whose results are stored together
  int tail_trips = 0;   ///< staged: trips of a tail block; 0: there are none; store_batch: all
                        ///< blocks are such
  int occupancy = 0;    ///< staged, columns, scans: blocks a multiprocessor; 0: as it comes
  int phases = 0;       ///< columns: rows so many apart begin alike, and are a warp's; 0: all do
  int strip = 0;  ///< columns: how many a block walks along, row by row; 0: it stays at its own
  int parts = 0;  ///< parts, columns: how many of them fill the target
  int apart = 0;  ///< merge_path on a CPU: segments one by one, of so many elements and more by all
                  ///< lanes; 0: by tiles
  int tile = 0;   ///< look_back, look_ahead, propagate: 1024 elements of a tile that is read twice
  int chain = 0;  ///< published: products that one accumulator takes; 0: as many as there are
  int product = 0;   ///< published: 1: a second product adds up the columns of a square
  int fraction = 0;  ///< split: of the elements, those on tensor cores, in percent
  int bytes = 16;    ///< a lane's load, at most
  bool mma = true;   ///< tensor cores for the folds that they serve
  /// What makes loads and stores faster and changes nothing else (hints.hpp), where rules say so;
  /// false: none of it, to measure what it brings.
  bool hints = true;

  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

}  // namespace chainfold::codegen
