#include "store/tensor_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "store/digest.h"
#include "store/npy.h"
#include "store/pickle.h"
#include "store/zip.h"

namespace samebits {
namespace {

const std::string kData = std::string(SB_SOURCE_DIR) + "/tests/data/";

std::string Sha(const TensorRef& t) { return Sha256Hex(std::string_view(static_cast<const char*>(t.data), t.bytes())); }

// Files written by numpy, safetensors and torch (tools/make_tensor_fixtures.py).
TEST(TensorFile, ReadsWhatTheRealWritersWrote) {
  const auto expected = nlohmann::json::parse(*ReadFile(kData + "expected.json"));
  EXPECT_EQ(expected.size(), 25u);
  for (const auto& [name, tensors] : expected.items()) {
    SCOPED_TRACE(name);
    const auto file = TensorFile::Open(kData + name);
    ASSERT_TRUE(file.ok()) << file.status().text();
    EXPECT_EQ(file->entries().size(), tensors.size());
    for (const auto& [key, want] : tensors.items()) {
      const auto at = file->Find(key);
      ASSERT_TRUE(at.has_value()) << key;
      const auto got = file->Load(*at);
      ASSERT_TRUE(got.ok()) << got.status().text();
      EXPECT_EQ(DTypeName(got->tensor.dtype), want["dtype"].get<std::string>()) << key;
      EXPECT_EQ(got->tensor.shape, want["shape"].get<Shape>()) << key;
      EXPECT_EQ(Sha(got->tensor), want["sha256"].get<std::string>()) << key;
      EXPECT_EQ(got->tensor.bytes(), file->entries()[*at].bytes);
    }
  }
}

TEST(TensorFile, ValuesBesideTheTensors) {
  const auto sglang = TensorFile::Open(kData + "sglang.pt");
  ASSERT_TRUE(sglang.ok());
  EXPECT_EQ(sglang->values().at("meta.name"), "attn_out");
  EXPECT_EQ(sglang->values().at("meta.layer_id"), "7");
  EXPECT_EQ(sglang->values().at("meta.scale"), "0.5");
  EXPECT_EQ(sglang->values().at("meta.graph"), "false");
  EXPECT_EQ(sglang->values().at("meta.sglang_parallel_info.tp_rank"), "1");
  EXPECT_EQ(TensorFile::Open(kData + "plain.safetensors")->values().at("who"), "t\xc3\xa9st");
  EXPECT_EQ(TensorFile::Open(kData + "bf16.npy")->entries()[0].note.substr(0, 23), "written without a type ");
}

TEST(TensorFile, CrcsScreenOnlyWhereTheyCoverTheTensor) {
  const auto views = TensorFile::Open(kData + "views.pt");
  const auto crc = [&](const char* name) { return views->entries()[*views->Find(name)].crc; };
  EXPECT_TRUE(crc("base").has_value());
  EXPECT_FALSE(crc("t").has_value());     // strided
  EXPECT_FALSE(crc("part").has_value());  // a part of its storage
  EXPECT_TRUE(TensorFile::Open(kData + "stored.npz")->entries()[0].crc.has_value());
  // torch was told to write no CRCs: nothing is claimed.
  EXPECT_FALSE(TensorFile::Open(kData + "no_crc.pt")->entries()[0].crc.has_value());
}

TEST(TensorFile, RefusesAndRunsNothing) {
  const struct {
    const char* file;
    const char* says;
  } kBad[] = {{"bad_evil.pt", "posix.system"},
              {"bad_module.pt", "torch.nn.modules.linear.Linear"},
              {"bad_cycle.pt", "contain themselves"},
              {"bad_bomb.pt", "unfold to more than"},
              {"bad_legacy.pt", "bare pickle"},
              {"bad_pickle.pt", "bare pickle"},
              {"bad_conj.pt", "flags"},
              {"bad_object.npy", "|O"},
              {"bad_struct.npy", "structured"},
              {"bad_escape.npz", "leaves the archive"},
              {"expected.json", "none of"},
              {"", "is a folder"},
              {"nowhere.pt", "nowhere.pt"}};
  for (const auto& bad : kBad) {
    const auto got = TensorFile::Open(kData + bad.file);
    ASSERT_FALSE(got.ok()) << bad.file;
    EXPECT_NE(got.status().text().find(bad.says), std::string::npos) << bad.file << " -> " << got.status().text();
  }
  EXPECT_FALSE(FileExists("samebits_was_fooled"));
}

// Cuts and bit flips of every fixture: refused or read, never a crash, and loads stay inside the file (asan preset).
TEST(TensorFile, DamagedFilesAreHandled) {
  const auto names = ListFolder(kData);
  ASSERT_TRUE(names.ok());
  int64_t refused = 0, read = 0;
  const auto attempt = [&](const std::string& bytes) {
    const auto t = TensorFile::Parse(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "damaged");
    if (!t.ok()) return static_cast<void>(++refused);
    ++read;
    for (size_t i = 0; i < t->entries().size(); ++i)
      if (const auto got = t->Load(i); got.ok()) DigestTensor(got->tensor, false);
  };
  uint32_t state = 12345;
  for (const std::string& name : *names) {
    if (name == "expected.json" || name == "bad_bomb.pt") continue;  // the bomb takes its time to be refused
    const std::string good = *ReadFile(kData + name);
    for (size_t n = 0; n < good.size(); n += 1 + good.size() / 100) attempt(good.substr(0, n));
    for (int i = 0; i < 200; ++i) {
      std::string broken = good;
      for (int k = 0; k <= i % 3; ++k) {
        state = state * 1664525u + 1013904223u;
        char& c = broken[(state >> 8) % broken.size()];
        c = static_cast<char>(i % 2 ? c ^ (1 << (state & 7)) : static_cast<int>(state & 0xff));
      }
      attempt(broken);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 300);
}

Status PickleStatus(const std::string& bytes) {
  return ParsePickle(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "p").status();
}

TEST(Pickle, OnlyTheAllowedNames) {
  for (const char* global :
       {"os\nsystem", "builtins\neval", "torch.storage\n_load_from_bytes", "torch\nload", "posix\nsystem",
        "torch._utils\n_rebuild_qtensor", "collections\nOrderedDict.__init__", "torch\nnn.Linear"}) {
    const Status status = PickleStatus(std::string("\x80\x02") + "c" + global + "\n.");
    EXPECT_FALSE(status.ok()) << global;
    EXPECT_NE(status.text().find("nothing was run"), std::string::npos) << status.text();
  }
  // The same through the stack, where a careless reader looks only at GLOBAL.
  EXPECT_FALSE(PickleStatus(std::string("\x80\x04\x8c\x02os\x8c\x06system\x93.")).ok());
  EXPECT_TRUE(PickleStatus(std::string("\x80\x02") + "ccollections\nOrderedDict\n)R.").ok());
  // INST, OBJ, EXT1, NEWOBJ and text PERSID are not known at all.
  for (const char op : {'i', 'o', '\x82', '\x81', 'P'})
    EXPECT_FALSE(PickleStatus(std::string("\x80\x02N") + op + ".").ok());
}

TEST(Pickle, BrokenOnes) {
  const std::string start = "\x80\x02";
  const std::string huge_text = start + std::string("X\xff\xff\xff\x7f", 5);
  for (const std::string& bad : {std::string(), start, start + ".", start + "a.", start + "N.N", start + "(.",
                                 start + "0.", start + "u.", start + "}(Nu.", start + "h\x05.", start + "]N\x85R.",
                                 start + "\x87.", huge_text, start + "Q.", start + "]]b.", start + "NN."})
    EXPECT_FALSE(PickleStatus(bad).ok());
  // A self-containing list is a legal pickle; walking it is what must end (bad_cycle.pt).
  EXPECT_TRUE(PickleStatus(start + std::string("]q\x00h\x00"
                                               "a.",
                                               7))
                  .ok());
}

TEST(Npy, WriterIsReadBack) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = ::testing::TempDir() + info->name() + std::to_string(::getpid()) + ".npy";
  const float f[6] = {1, -0.0f, 3, 4, 5, 6};
  for (const Shape& shape : {Shape{}, Shape{6}, Shape{2, 3}, Shape{0, 4}, Shape{1, 2, 3}}) {
    const TensorRef t{DType::kF32, shape, f};
    ASSERT_TRUE(WriteNpy(path, t).ok());
    const auto back = TensorFile::Open(path);
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_TRUE(SameBits(back->Load(0)->tensor, t)) << ShapeText(shape);
  }
  EXPECT_TRUE(WriteNpy(path, {DType::kBF16, {3}, f}).ok());
  EXPECT_EQ(TensorFile::Open(path)->entries()[0].dtype, DType::kBF16);
  EXPECT_FALSE(WriteNpy(path, {DType::kF4, {4}, f}).ok());
}

TEST(Npy, HeadersThatLie) {
  const auto file = [](const std::string& dict, size_t data) {
    std::string out = std::string("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(dict.size());
    out += '\0';
    return out + dict + std::string(data, 'x');
  };
  const auto parse = [](const std::string& f) {
    return ParseNpy(reinterpret_cast<const uint8_t*>(f.data()), f.size(), "f");
  };
  EXPECT_TRUE(parse(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8)).ok());
  EXPECT_TRUE(parse(file("{'shape':(2,),'descr':'<f4','fortran_order':False}\n", 8)).ok());
  for (const char* bad :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<U4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } + evil()", "", "{", "[]",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"})
    EXPECT_FALSE(parse(file(bad, 8)).ok()) << bad;
}

TEST(Zip, BombsAndLiesAreRefused) {
  const std::string good = *ReadFile(kData + "deflated.npz");
  const auto parse = [](const std::string& f) {
    return ZipView::Parse(reinterpret_cast<const uint8_t*>(f.data()), f.size(), "z");
  };
  auto zip = parse(good);
  ASSERT_TRUE(zip.ok());
  ASSERT_GT(zip->members().size(), 3u);
  for (const auto& m : zip->members()) EXPECT_TRUE(zip->Read(m).ok()) << m.name;
  const size_t central = good.find("PK\x01\x02");
  std::string bomb = good;  // the first member claims 2 GB unpacked
  for (int i = 0; i < 4; ++i) bomb[central + 24 + static_cast<size_t>(i)] = i == 3 ? '\x7f' : '\xff';
  EXPECT_FALSE(parse(bomb).ok());
  std::string wrong_crc = good;
  wrong_crc[central + 16] = static_cast<char>(wrong_crc[central + 16] ^ 1);
  zip = parse(wrong_crc);
  ASSERT_TRUE(zip.ok());
  EXPECT_NE(zip->Read(zip->members()[0]).status().text().find("CRC"), std::string::npos);
  std::string outside = good;
  outside[central + 45] = '\x7f';
  EXPECT_FALSE(parse(outside).ok());
  std::string encrypted = good;
  encrypted[central + 8] = static_cast<char>(encrypted[central + 8] | 1);
  EXPECT_FALSE(parse(encrypted).ok());
}

}  // namespace
}  // namespace samebits
