#include "passes/precision/precision_cut.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace mpc {

namespace {

// A pin's capacity. Sums of a cut's other capacities stay below it, and two of it fit 64 bits.
constexpr std::int64_t Infinite = PrecisionCut::CostLimit;

// Maximum flow by blocking flows in level graphs: Dinic 1970, "Algorithm for solution of a problem of maximum flow in a
// network with power estimation". The time is at most proportional to nodes^2 * arcs. No recursion: networks may be
// long chains.
class FlowNetwork {
public:
  explicit FlowNetwork(unsigned NumNodes) : Arcs(NumNodes) {}

  void addArc(unsigned From, unsigned To, std::int64_t Capacity) {
    Arcs[From].push_back({To, static_cast<unsigned>(Arcs[To].size()), Capacity});
    Arcs[To].push_back({From, static_cast<unsigned>(Arcs[From].size() - 1), 0});
  }

  std::int64_t maximumFlow(unsigned Source, unsigned Sink) {
    std::int64_t Flow = 0;
    while (levelsReach(Source, Sink))
      Flow += blockingFlow(Source, Sink);
    return Flow;
  }

  // The nodes that reach the sink through arcs with capacity left.
  std::vector<bool> reaching(unsigned Sink) const {
    std::vector<bool> Reaches(Arcs.size(), false);
    std::vector<unsigned> Worklist{Sink};
    Reaches[Sink] = true;
    while (!Worklist.empty()) {
      unsigned Node = Worklist.back();
      Worklist.pop_back();
      for (const Arc &Out : Arcs[Node])
        if (!Reaches[Out.To] && Arcs[Out.To][Out.Reverse].Capacity > 0) {
          Reaches[Out.To] = true;
          Worklist.push_back(Out.To);
        }
    }
    return Reaches;
  }

private:
  struct Arc {
    unsigned To;
    unsigned Reverse; // index of the opposite arc at `To`
    std::int64_t Capacity;
  };

  bool levelsReach(unsigned Source, unsigned Sink) {
    Level.assign(Arcs.size(), -1);
    Level[Source] = 0;
    std::vector<unsigned> Queue{Source};
    for (std::size_t Next = 0; Next < Queue.size(); ++Next)
      for (const Arc &Out : Arcs[Queue[Next]])
        if (Out.Capacity > 0 && Level[Out.To] < 0) {
          Level[Out.To] = Level[Queue[Next]] + 1;
          Queue.push_back(Out.To);
        }
    return Level[Sink] >= 0;
  }

  std::int64_t blockingFlow(unsigned Source, unsigned Sink) {
    std::int64_t Flow = 0;
    Current.assign(Arcs.size(), 0);
    std::vector<Arc *> Path;
    unsigned Node = Source;
    while (true) {
      if (Node == Sink) {
        Flow += augment(Path);
        // Back to the tail of the first arc that is full now.
        std::size_t Keep = 0;
        while (Path[Keep]->Capacity > 0)
          ++Keep;
        Path.resize(Keep);
        Node = Path.empty() ? Source : Path.back()->To;
      } else if (Arc *Next = admissible(Node)) {
        Path.push_back(Next);
        Node = Next->To;
      } else if (Path.empty()) {
        return Flow;
      } else {
        // A dead end: its arc is not tried again in this phase.
        Path.pop_back();
        Node = Path.empty() ? Source : Path.back()->To;
        ++Current[Node];
      }
    }
  }

  Arc *admissible(unsigned Node) {
    for (std::size_t &Index = Current[Node]; Index < Arcs[Node].size(); ++Index) {
      Arc &Out = Arcs[Node][Index];
      if (Out.Capacity > 0 && Level[Out.To] == Level[Node] + 1)
        return &Out;
    }
    return nullptr;
  }

  std::int64_t augment(const std::vector<Arc *> &Path) {
    std::int64_t Amount = Infinite;
    for (const Arc *Step : Path)
      Amount = std::min(Amount, Step->Capacity);
    for (Arc *Step : Path) {
      Step->Capacity -= Amount;
      Arcs[Step->To][Step->Reverse].Capacity += Amount;
    }
    return Amount;
  }

  std::vector<std::vector<Arc>> Arcs;
  std::vector<int> Level;
  std::vector<std::size_t> Current;
};

} // namespace

void PrecisionCut::addToTotal(std::int64_t Amount) { Total = Amount < Infinite - Total ? Total + Amount : Infinite; }

unsigned PrecisionCut::addSlot(Pin Pinned, std::int64_t LowGain) {
  addToTotal(LowGain <= -Infinite ? Infinite : std::abs(LowGain));
  Slots.push_back({Pinned, LowGain});
  return numSlots() - 1;
}

void PrecisionCut::addValue(unsigned Producer, std::span<const unsigned> Consumers, std::int64_t Weight) {
  assert(Weight >= 0 && "a cast does not pay");
  addToTotal(Weight);
  Values.push_back({Producer, {Consumers.begin(), Consumers.end()}, Weight});
}

bool PrecisionCut::solve() {
  if (Total >= Infinite)
    return false;
  const unsigned Source = numSlots(), Sink = Source + 1, FirstValue = Sink + 1;
  FlowNetwork Network(FirstValue + 2 * static_cast<unsigned>(Values.size()));
  for (unsigned Slot = 0; Slot < numSlots(); ++Slot) {
    if (Slots[Slot].Pinned == Pin::Low)
      Network.addArc(Source, Slot, Infinite);
    if (Slots[Slot].Pinned == Pin::F32)
      Network.addArc(Slot, Sink, Infinite);
    if (Slots[Slot].LowGain > 0)
      Network.addArc(Source, Slot, Slots[Slot].LowGain);
    if (Slots[Slot].LowGain < 0)
      Network.addArc(Slot, Sink, -Slots[Slot].LowGain);
  }
  unsigned Node = FirstValue;
  for (const Value &V : Values) {
    const unsigned Widened = Node++, Narrowed = Node++;
    Network.addArc(V.Producer, Widened, V.Weight);
    Network.addArc(Narrowed, V.Producer, V.Weight);
    for (unsigned Consumer : V.Consumers) {
      Network.addArc(Widened, Consumer, Infinite);
      Network.addArc(Consumer, Narrowed, Infinite);
    }
  }
  Cost = Network.maximumFlow(Source, Sink);
  std::vector<bool> ReachesF32 = Network.reaching(Sink);
  Low.assign(numSlots(), false);
  for (unsigned Slot = 0; Slot < numSlots(); ++Slot)
    Low[Slot] = !ReachesF32[Slot];
  return true;
}

} // namespace mpc
