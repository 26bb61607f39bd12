#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

void AddReshapes(std::vector<OpCase>& cases) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{6}, {2, 3}}, {{2, 3, 4, 5}, {2, 60}}, {{1}, {}}, {{}, {1, 1}}, {{7, 1, 3}, {21}}, {{32, 16, 5, 5}, {32, 400}}};
  for (const auto& [from, to] : shapes) {
    const std::string name = absl::StrCat("reshape/", ShapeToString(from), "_to_", ShapeToString(to));
    cases.push_back({name, "reshape", {{"shape", to}}, {Variable(from)}, {F32(to)}});
    cases.push_back({name + "_i32", "reshape", {{"shape", to}}, {{I32(from), Integers(-9, 9)}}, {I32(to)}});
  }
}

// Of one process.
void AddCollectives(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5, 2}}) {
    const std::string text = ShapeToString(shape);
    Shape gathered{1};
    gathered.insert(gathered.end(), shape.begin(), shape.end());
    cases.push_back({absl::StrCat("all_reduce/", text), "all_reduce", {}, {Variable(shape)}, {F32(shape)}});
    cases.push_back(
        {absl::StrCat("all_reduce_max/", text), "all_reduce_max", {}, {{I32(shape), Integers(-9, 9)}}, {I32(shape)}});
    cases.push_back({absl::StrCat("all_gather/", text), "all_gather", {}, {Variable(shape)}, {F32(gathered)}});
    cases.push_back({absl::StrCat("all_gather/", text, "_i32"),
                     "all_gather",
                     {},
                     {{I32(shape), Integers(-9, 9)}},
                     {I32(gathered)}});
  }
  cases.push_back({"process_rank/alone", "process_rank", {}, {}, {I32({})}});
}

void AddTransposes(std::vector<OpCase>& cases) {
  const std::vector<std::pair<Shape, std::vector<std::int64_t>>> transposes = {
      {{5}, {0}},
      {{3, 5}, {0, 1}},
      {{3, 5}, {1, 0}},
      {{1, 7}, {1, 0}},
      {{129, 65}, {1, 0}},
      {{2, 3, 4}, {2, 0, 1}},
      {{2, 3, 4}, {0, 2, 1}},
      {{2, 3, 5, 7}, {0, 2, 3, 1}},  // NCHW to NHWC
      {{2, 5, 7, 3}, {0, 3, 1, 2}},  // and back
      {{32, 6, 14, 14}, {0, 2, 3, 1}},
      {{2, 1, 5, 7}, {0, 2, 3, 1}},
      {{3, 2, 4, 5}, {3, 2, 1, 0}},
  };
  for (const auto& [from, permutation] : transposes) {
    Shape to;
    for (std::int64_t axis : permutation) to.push_back(from[static_cast<std::size_t>(axis)]);
    const std::string name = absl::StrCat("transpose/", ShapeToString(from), "_by_", absl::StrJoin(permutation, ""));
    cases.push_back({name, "transpose", {{"permutation", permutation}}, {Variable(from)}, {F32(to)}});
    cases.push_back(
        {name + "_i32", "transpose", {{"permutation", permutation}}, {{I32(from), Integers(-9, 9)}}, {I32(to)}});
  }
}

void AddBroadcasts(std::vector<OpCase>& cases) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{}, {1}},
                                                       {{}, {3, 5}},
                                                       {{1}, {1027}},
                                                       {{5}, {3, 5}},
                                                       {{3, 1}, {3, 5}},
                                                       {{3, 1, 2}, {4, 3, 7, 2}},
                                                       {{1, 6, 1, 1}, {4, 6, 9, 9}},
                                                       {{2, 3}, {2, 3}}};
  for (const auto& [from, to] : shapes) {
    AddMovement(cases, {absl::StrCat("broadcast_to/", ShapeToString(from), "_to_", ShapeToString(to)),
                        "broadcast_to",
                        {{"shape", to}},
                        {Variable(from)},
                        {F32(to)}});
  }
}

}  // namespace

std::vector<OpCase> DataMovementCases() {
  std::vector<OpCase> cases;
  AddReshapes(cases);
  AddTransposes(cases);
  AddCollectives(cases);
  AddBroadcasts(cases);
  return cases;
}

}  // namespace mpc::op_cases
