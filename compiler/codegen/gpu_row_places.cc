// The elements of a row that a thread has.
#include "compiler/codegen/gpu_row_sweep.h"

using namespace mlir;

namespace mpc::codegen {

// A team beyond the last row visits that once more, and what it computes is not used: barriers and shuffles take all.
RowSweep::Row RowSweep::rowAt(llvm::Value *first, unsigned number) {
  unsigned atOnce = t.ahead * t.teams();
  bool even = atOnce == 1 || (rows % t.rowsPerBlock == 0 && t.rowsPerBlock % atOnce == 0);
  llvm::Value *index = b.CreateNUWAdd(b.CreateNUWAdd(first, f.index(number * t.teams())), team);
  Row r;
  r.inside = even ? b.getTrue() : f.isBelow(index, rowEnd);
  r.index = even ? index : f.minimum(index, f.index(rows - 1));
  r.at = std::make_unique<RowPosition>(f, r.index, f.index(0), /*lanes=*/0);
  // A later load would wait behind the barriers of the row before.
  r.at->preload(s.rowValues, Extent::PerRow);
  r.head = f.index(0);
  r.vectors = f.index(columns / t.vector);
  if (t.shifted) {
    // The first multiple of the vector in the space that is not before the row.
    llvm::Value *start = b.CreateNUWMul(r.index, f.index(columns));
    r.head = b.CreateAnd(b.CreateNeg(start), f.index(t.vector - 1));
    r.vectors = b.CreateUDiv(b.CreateNUWSub(f.index(columns), r.head), f.index(t.vector));
    placeEdge(r);
  }
  if (!t.resident)
    return r;
  if (!t.shifted) {
    r.resident = rowPlacesAt(r, resident, Pass::First);
    return r;
  }
  Places places;
  for (unsigned i = 0; i < t.places; ++i) {
    bool whole = int64_t{i + 1} * t.lanes <= (columns - (t.vector - 1)) / t.vector;
    places.push_back(placeOf(r, b.CreateNUWAdd(lane, f.index(int64_t{i} * t.lanes)), i, whole));
  }
  r.resident = rowPlacesAt(r, places, Pass::First);
  return r;
}

RowSweep::Places RowSweep::placesAt(llvm::Value *begin) {
  Places made;
  for (unsigned i = 0; i < t.places; ++i) {
    int64_t first = int64_t{i} * t.lanes * t.vector;
    int64_t past = first + int64_t{t.lanes} * t.vector;
    bool whole = columns % t.width() == 0 || (t.columnTiles == 1 && past <= columns);
    llvm::Value *column =
        b.CreateNUWAdd(b.CreateNUWAdd(begin, f.index(first)), b.CreateNUWMul(lane, f.index(t.vector)));
    llvm::Value *inside = whole ? b.getTrue() : f.isBelow(column, f.index(columns));
    made.push_back({whole ? column : f.minimum(column, f.index(columns - t.vector)), inside, i});
  }
  return made;
}

// The place of a row's vector number `vector`, or of the last one where there are not so many.
RowSweep::Place RowSweep::placeOf(const Row &r, llvm::Value *vector, unsigned number, bool whole) {
  llvm::Value *inside = whole ? b.getTrue() : f.isBelow(vector, r.vectors);
  llvm::Value *known = whole ? vector : f.minimum(vector, b.CreateNUWSub(r.vectors, f.index(1)));
  return {b.CreateNUWAdd(r.head, b.CreateNUWMul(known, f.index(t.vector))), inside, number};
}

// The elements before the first whole vector, then those behind the last one. They stay in a register.
void RowSweep::placeEdge(Row &r) {
  llvm::Value *behind = b.CreateNUWAdd(lane, b.CreateNUWMul(r.vectors, f.index(t.vector)));
  llvm::Value *column = b.CreateSelect(f.isBelow(lane, r.head), lane, behind);
  r.edgeInside = f.isBelow(column, f.index(columns));
  column = f.minimum(column, f.index(columns - 1));
  r.edge = {{column, b.getTrue(), 0}, std::make_unique<RowPosition>(f, r.index, column, /*lanes=*/0)};
  r.edge.at->preload(s.elements);
  takeRowValues(*r.edge.at, r);
}

void RowSweep::takeRowValues(RowPosition &at, const Row &r) {
  for (Value v : s.rowValues)
    at.take(v, r.at->preloaded(v));
}

RowSweep::RowPlaces RowSweep::rowPlacesAt(const Row &r, ArrayRef<Place> at, Pass pass) {
  RowPlaces made;
  for (const Place &p : at) {
    RowPosition::Anchors anchors{r.anchor, columnAnchor};
    made.push_back({p, std::make_unique<RowPosition>(f, r.index, p.column, lanes, anchors, t.shifted)});
    RowPosition &position = *made.back().at;
    takeRowValues(position, r);
    if (p.bound)
      position.setBound(*p.bound);
    if (!t.staged || pass == Pass::First) {
      position.preload(s.elements);
      continue;
    }
    for (auto [i, element] : llvm::enumerate(s.elements)) {
      llvm::Type *type = storageType(element);
      position.take(element, f.load(lanes ? llvm::FixedVectorType::get(type, lanes) : type, stagedAt(i, p, r)));
    }
  }
  return made;
}

void RowSweep::eachRowPlace(const Row &r, Pass pass, llvm::function_ref<void(const RowPlace &)> visit) {
  if (t.resident)
    for (const RowPlace &at : r.resident)
      visit(at);
  else
    eachLongRowPlace(r, pass, visit);
  if (t.shifted)
    f.when(r.edgeInside, [&] { visit(r.edge); });
}

// A thread takes every `lanes`-th vector, some of them at a time. So it reads back what it has staged itself.
void RowSweep::eachLongRowPlace(const Row &r, Pass pass, llvm::function_ref<void(const RowPlace &)> visit) {
  // Loads from shared memory are soon back.
  unsigned together = t.staged && pass == Pass::Later ? std::min(t.places, 2u) : t.places;
  const int64_t round = int64_t{together} * t.lanes, most = columns / t.vector / round * round;
  auto visitFrom = [&](llvm::Value *vector, bool whole) {
    Places places;
    for (unsigned i = 0; i < together; ++i) {
      Place &p = places.emplace_back(placeOf(r, b.CreateNUWAdd(vector, f.index(int64_t{i} * t.lanes)), i, whole));
      int64_t bound = (whole ? most : most + int64_t{i + 1} * t.lanes) * t.vector + (t.shifted ? t.vector - 1 : 0);
      if (bound > 0 && bound < columns)
        p.bound = bound;
    }
    RowPlaces loaded = rowPlacesAt(r, places, pass);
    for (RowPlace &at : loaded) {
      llvm::Value *inside = std::exchange(at.inside, b.getTrue());
      f.when(inside, [&] {
        if (t.staged && pass == Pass::First)
          for (auto [i, element] : llvm::enumerate(s.elements))
            f.store(at.at->preloaded(element), stagedAt(i, at, r));
        visit(at);
      });
    }
  };
  llvm::Value *whole = b.CreateNUWMul(b.CreateUDiv(r.vectors, f.index(round)), f.index(round));
  f.loop(lane, whole, f.index(round), [&](llvm::Value *vector) { visitFrom(vector, /*whole=*/true); });
  llvm::Value *rest = b.CreateNUWAdd(whole, lane);
  f.when(f.isBelow(rest, r.vectors), [&] { visitFrom(rest, /*whole=*/false); });
}

// Where the row's vectors of an element lie in shared memory, one behind the other.
llvm::Value *RowSweep::stagedAt(unsigned element, const Place &p, const Row &r) {
  return f.element(stages[element], storageType(s.elements[element]), b.CreateNUWSub(p.column, r.head));
}

// Asks for the row behind \p r, while the block computes with r.
void RowSweep::prefetchAfter(const Row &r) {
  constexpr int64_t line = 128;
  llvm::Value *next = f.minimum(b.CreateNUWAdd(r.index, f.index(1)), f.index(rows - 1));
  for (Value element : s.elements) {
    llvm::Type *type = storageType(element);
    int64_t bytes = type->getPrimitiveSizeInBits().getFixedValue() / 8, step = line / bytes;
    llvm::Value *begin = b.CreateNUWMul(next, f.index(columns));
    llvm::Value *base = f.addressOf(element);
    f.loop(b.CreateNUWMul(lane, f.index(step)), f.index(columns), f.index(step * t.lanes),
           [&](llvm::Value *column) { f.prefetch(f.element(base, type, b.CreateNUWAdd(begin, column))); });
  }
}

} // namespace mpc::codegen
