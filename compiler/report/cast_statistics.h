// Casts by what they move, as plain rows: kinds, types, counts, bytes. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpc::compiler {

/// What a cast moves. A narrowing cast is named after what it narrows.
enum class CastKind {
  Weight,     ///< f32 parameter to low
  Input,      ///< f32 input of the function to low
  Activation, ///< f32 forward value to low
  Gradient,   ///< f32 cotangent to low
  Loss,       ///< low to f32 for a loss
  Widening,   ///< low to f32 for anything else, exact
  User,       ///< written by the user: its rounding stays
  Other,      ///< from or to integers
};

/// "weight", "input", ...
const char *CastKindName(CastKind kind);

/// The casts of one kind between two types.
struct CastGroup {
  CastKind kind = CastKind::Other;
  std::string from;
  std::string to;
  std::int64_t count = 0;
  std::int64_t bytes = 0;         ///< read and written
  std::vector<std::string> where; ///< one a cast: the argument's name, or the operation that made the value
};

/// A cast, the group it belongs to, and what made the value that it reads.
struct CastRecord {
  CastKind kind = CastKind::Other;
  std::string from;
  std::string to;
  std::int64_t bytes = 0; ///< read and written
  std::string where;      ///< as in CastGroup
  std::string op;         ///< "matmul"; for an argument its role, "parameter"
  std::string path;       ///< Cell path of the operation; name of an argument, empty for inputs
  bool backward = false;  ///< as in PrecisionRow
  bool update = false;    ///< as in PrecisionRow
};

/// Groups of casts, ordered by kind, then by types.
class CastStatistics {
public:
  void add(const CastRecord &cast);
  const std::vector<CastGroup> &groups() const { return castGroups; }
  std::int64_t count() const { return castCount; }
  std::int64_t bytes() const { return castBytes; }

private:
  std::vector<CastGroup> castGroups;
  std::int64_t castCount = 0;
  std::int64_t castBytes = 0;
};

} // namespace mpc::compiler
