#include "frontend/graph/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

/// A version 1 file with this header text and these element bytes.
std::string Npy(const std::string& header, const std::string& elements) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + elements;
}

std::string ErrorOf(const std::string& content) {
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  const absl::StatusOr<Tensor> tensor = internal::ParseNpy(bytes, "x.npy");
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("x.npy"));
  return std::string(tensor.status().message());
}

TEST(Npy, RoundTripsEveryTypeAndRank) {
  const TemporaryFolder folder;
  for (DType dtype :
       {DType::kF32, DType::kF16, DType::kF64, DType::kI8, DType::kU8, DType::kI32, DType::kI64, DType::kBool}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0, 4}, Shape{2, 1, 2}}) {
      const Tensor saved = Tensor::Full(shape, 1, dtype);
      ASSERT_TRUE(saved.Save(folder / "t.npy").ok());
      const absl::StatusOr<Tensor> loaded = Tensor::Load(folder / "t.npy");
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(loaded->spec(), saved.spec());
      EXPECT_EQ(loaded->bytes(), saved.bytes());
    }
  }
}

TEST(Npy, WritesTheBytesOfNumPy) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Tensor::From<float>({1, 2}, {2}).Save(folder / "t.npy").ok());
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  EXPECT_EQ(ReadAll(folder / "t.npy"), Npy(header + "\n", std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
}

TEST(Npy, ReadsVersionTwoAndFreeSpacing) {
  std::string file("\x93NUMPY\x02\x00\x34\x00\x00\x00", 12);
  file += "{\"shape\":(1,1),\"fortran_order\":False,\"descr\":\"<i4\"} ";
  file += std::string("\x05\0\0\0", 4);
  file[8] = static_cast<char>(file.size() - 12 - 4);
  const absl::StatusOr<Tensor> tensor =
      internal::ParseNpy({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "x.npy");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->Item<int>(), 5);
  EXPECT_EQ(tensor->shape(), (Shape{1, 1}));
}

TEST(Npy, RefusesWhatItCannotRead) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_THAT(ErrorOf("hello, world"), HasSubstr("not an .npy file"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("not an .npy file"));
  EXPECT_THAT(ErrorOf(std::string("\x93NUMPY\x03\x00\x00\x00", 10)), HasSubstr("version 3"));
  EXPECT_THAT(ErrorOf(Npy(good, "").substr(0, 30)), HasSubstr("ends in its header"));
  EXPECT_THAT(ErrorOf(Npy(good, "1234567")), HasSubstr("needs 8 bytes of elements, the file has 7"));
  EXPECT_THAT(ErrorOf(Npy(good, "123456789")), HasSubstr("the file has 9"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n", "12345678")),
              HasSubstr("'>f4' is not supported; accepted are <f4"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,2), }\n", "12345678")),
              HasSubstr("Fortran order"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f4', 'shape': (2,), }\n", "12345678")), HasSubstr("not a dict"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }\n", "")),
              HasSubstr("not a dict"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9000000000000000000, 9), }\n", "")),
              HasSubstr("more bytes"));
}

TEST(Npy, MissingFileAndTypesThatNumPyLacksAreErrors) {
  const TemporaryFolder folder;
  EXPECT_EQ(Tensor::Load(folder / "none.npy").status().code(), absl::StatusCode::kNotFound);
  const absl::Status status = Tensor::Zeros({2}, DType::kBF16).Save(folder / "t.npy");
  EXPECT_THAT(std::string(status.message()), HasSubstr("no bf16"));
  const absl::Status of_f8 = Tensor::Zeros({2}, DType::kF8E5M2).Save(folder / "t.npy");
  EXPECT_THAT(std::string(of_f8.message()), HasSubstr("NumPy has no f8E5M2; convert with To(DType::kF32)"));
  EXPECT_EQ(Tensor().Save(folder / "t.npy").code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace mpc
