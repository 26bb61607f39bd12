// Which addresses of an arena are taken while a range of instructions runs.
#pragma once

#include <cstddef>
#include <vector>

namespace mpc::runtime {

/// The addresses from `begin` to before `end`.
struct AddressRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const AddressRange&) const = default;
};

/// A set of addresses, as ranges in order that neither overlap nor touch.
class AddressRanges {
 public:
  /// Adds a range of at least one byte.
  void Add(const AddressRange& range);
  const std::vector<AddressRange>& all() const { return ranges_; }

 private:
  std::vector<AddressRange> ranges_;
};

/// A segment tree over times (de Berg et al. 2008, "Computational Geometry", section 10.3). A life is cut into the
/// fewest nodes that cover it, at most two of a level. Each node keeps the union of its addresses.
///
/// Adding and asking visit a number of nodes that grows with the logarithm of the times. Each visit costs what the
/// union of a node has ranges. In an arena that is packed densely they are few, however many lives there are.
class OccupiedMemory {
 public:
  /// For lives among the times from 0 to before `times`.
  explicit OccupiedMemory(std::size_t times);

  /// Takes `range` from time `first` to time `last`, both included.
  void Add(std::size_t first, std::size_t last, const AddressRange& range);

  /// Replaces `taken` by the addresses that are taken at some time from `first` to `last`, in order. No range touches
  /// the next.
  void FindTaken(std::size_t first, std::size_t last, std::vector<AddressRange>& taken) const;

 private:
  /// Times from `first` to `last`, both included.
  struct Times {
    std::size_t first, last;
  };

  struct Node {
    AddressRanges here;    ///< lives that were cut down to this node
    AddressRanges within;  ///< lives of this node and of all nodes below it
  };

  /// Calls `cover` for the fewest nodes below `node` that cover `life`, and `pass` for the nodes above them.
  template <typename Nodes, typename Cover, typename Pass>
  static void Visit(Nodes& nodes, std::size_t node, Times of_node, Times life, const Cover& cover, const Pass& pass);

  Times All() const { return {0, nodes_.size() / 2 - 1}; }

  std::vector<Node> nodes_;  ///< the root is node 1, and the halves of node i are nodes 2i and 2i + 1
};

}  // namespace mpc::runtime
