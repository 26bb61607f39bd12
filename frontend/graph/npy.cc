#include "frontend/graph/npy.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/atomic_file.h"
#include "runtime/file_content.h"

namespace mpc::internal {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;

struct Header {
  std::optional<std::string> descriptor;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// Reads the literal dict of a header: string keys; values are a string, True, False or a tuple of integers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  /// Null if the text is not such a dict, has an unknown or repeated key, or text after the dict.
  std::optional<Header> Parse() {
    Header header;
    if (!Accept('{')) return std::nullopt;
    while (!Accept('}')) {
      if (!ParseField(&header)) return std::nullopt;
      if (!Accept(',') && Peek() != '}') return std::nullopt;
    }
    SkipSpace();
    if (position_ != text_.size() || !header.descriptor || !header.fortran_order || !header.shape) return std::nullopt;
    return header;
  }

 private:
  bool ParseField(Header* header) {
    const std::optional<std::string> key = ParseString();
    if (!key || !Accept(':')) return false;
    if (*key == "descr" && !header->descriptor) return (header->descriptor = ParseString()).has_value();
    if (*key == "fortran_order" && !header->fortran_order) return (header->fortran_order = ParseBool()).has_value();
    if (*key == "shape" && !header->shape) return (header->shape = ParseTuple()).has_value();
    return false;
  }

  void SkipSpace() {
    while (position_ < text_.size() && std::strchr(" \t\r\n", text_[position_]) != nullptr) ++position_;
  }

  char Peek() {
    SkipSpace();
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool Accept(char expected) {
    if (Peek() != expected) return false;
    ++position_;
    return true;
  }

  std::optional<std::string> ParseString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }

  std::optional<bool> ParseBool() {
    SkipSpace();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    return std::nullopt;
  }

  std::optional<Shape> ParseTuple() {
    if (!Accept('(')) return std::nullopt;
    Shape shape;
    while (!Accept(')')) {
      SkipSpace();
      std::size_t end = position_;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      std::int64_t extent = 0;
      if (!absl::SimpleAtoi(absl::string_view(text_.data() + position_, end - position_), &extent)) return std::nullopt;
      position_ = end;
      shape.push_back(extent);
      if (!Accept(',') && Peek() != ')') return std::nullopt;
    }
    return shape;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

std::string AcceptedDescriptors() {
  std::string names;
  for (const DTypeInfo& info : kDTypes) {
    if (!info.npy.empty()) absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(info.npy));
  }
  return names;
}

absl::StatusOr<TensorSpec> SpecOf(const Header& header, const std::string& origin) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].npy.empty() || kDTypes[i].npy != *header.descriptor) continue;
    TensorSpec spec{static_cast<DType>(i), *header.shape};
    if (absl::Status status = CheckSpec(spec); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(origin, ": ", status.message()));
    }
    return spec;
  }
  return absl::InvalidArgumentError(absl::StrCat(origin, ": element type '", *header.descriptor,
                                                 "' is not supported; accepted are ", AcceptedDescriptors()));
}

std::uint32_t LittleEndian(absl::Span<const std::uint8_t> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

absl::StatusOr<NpyLayout> ParseNpyLayout(absl::Span<const std::uint8_t> content, const std::string& origin) {
  if (content.size() < kMagic.size() + 2 || std::memcmp(content.data(), kMagic.data(), kMagic.size()) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is not an .npy file: it does not begin with \\x93NUMPY"));
  }
  const int version = content[kMagic.size()];
  if (version != 1 && version != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": .npy version ", version, " is not supported; accepted are 1 and 2"));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t header_begin = kMagic.size() + 2 + length_bytes;
  if (content.size() < header_begin) return absl::InvalidArgumentError(absl::StrCat(origin, " ends in its header"));
  const std::size_t header_size = LittleEndian(content.subspan(kMagic.size() + 2, length_bytes));
  if (header_size > content.size() - header_begin) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " ends in its header: ", header_size,
                                                   " bytes are declared, ", content.size() - header_begin, " follow"));
  }
  const std::string_view text(reinterpret_cast<const char*>(content.data()) + header_begin, header_size);
  const std::optional<Header> header = HeaderParser(text).Parse();
  if (!header) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin, ": the header is not a dict of descr, fortran_order and shape: ", std::string(text.substr(0, 120))));
  }
  absl::StatusOr<TensorSpec> spec = SpecOf(*header, origin);
  if (!spec.ok()) return spec.status();
  const absl::Span<const std::uint8_t> elements = content.subspan(header_begin + header_size);
  if (elements.size() != spec->bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": ", spec->ToString(), " needs ", spec->bytes(),
                                                   " bytes of elements, the file has ", elements.size()));
  }
  return NpyLayout{*std::move(spec), *header->fortran_order && header->shape->size() > 1, header_begin + header_size};
}

absl::StatusOr<Tensor> ParseNpy(absl::Span<const std::uint8_t> content, const std::string& origin) {
  absl::StatusOr<NpyLayout> layout = ParseNpyLayout(content, origin);
  if (!layout.ok()) return layout.status();
  if (layout->fortran_order) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": Fortran order is not supported; save with order='C'"));
  }
  const absl::Span<const std::uint8_t> elements = content.subspan(layout->elements_begin);
  return Tensor::FromBytes(std::move(layout->spec), elements.data(), elements.size());
}

absl::StatusOr<Tensor> LoadNpy(const std::string& path) {
  absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok()) return content.status();
  return ParseNpy(*content, path);
}

absl::Status SaveNpy(const Tensor& tensor, const std::string& path) {
  const std::string descriptor(InfoOf(tensor.dtype()).npy);
  if (descriptor.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot save ", tensor.spec().ToString(), " as ", path,
                                                   ": NumPy has no ", std::string(DTypeName(tensor.dtype())),
                                                   "; convert with To(DType::kF32)"));
  }
  std::string shape;
  for (std::int64_t extent : tensor.shape()) absl::StrAppend(&shape, extent, tensor.rank() == 1 ? "," : ", ");
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  std::string header = absl::StrCat("{'descr': '", descriptor, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const std::size_t prefix_size = kMagic.size() + 4;
  const std::size_t unpadded = prefix_size + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header.push_back('\n');
  // A version 1 header holds 65,535 bytes: more than 3,000 axes.
  if (header.size() > 0xffff) {
    return absl::InvalidArgumentError(absl::StrCat("cannot save ", path, ": rank ", tensor.rank(), " is too large"));
  }
  std::string prefix(kMagic);
  prefix += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  const std::string front = prefix + header;
  const absl::Span<const std::uint8_t> chunks[] = {{reinterpret_cast<const std::uint8_t*>(front.data()), front.size()},
                                                   tensor.bytes()};
  return runtime::WriteFileAtomically(path, chunks);
}

}  // namespace mpc::internal
