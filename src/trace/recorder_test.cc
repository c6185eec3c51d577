#include "trace/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "base/strings.h"
#include "trace/trace_reader.h"

namespace samebits {
namespace {

std::string Folder(const std::string& tail) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return ::testing::TempDir() + "sb_trace_" + info->name() + std::to_string(::getpid()) + tail;
}

// Two requests in one batch, three layers, one step; `batch_first` puts request 8 in front.
struct Batch {
  std::vector<RowOwner> owners;
  std::vector<float> hidden;
  std::vector<int32_t> list, lens;
  explicit Batch(bool batch_first) {
    for (int i = 0; i < 5; ++i) owners.push_back({7, 10 + i});
    if (batch_first) {
      owners.insert(owners.begin(), RowOwner{8, 3});
    } else {
      owners.push_back({8, 3});
    }
    for (const RowOwner& o : owners) {
      lens.push_back(o.position % 4 + 1);
      for (int c = 0; c < 33; ++c)
        hidden.push_back(static_cast<float>(o.position * 100 + c) + static_cast<float>(o.request));
      for (int c = 0; c < 4; ++c) list.push_back(o.position + (batch_first ? 3 - c : c));
    }
  }
};

Status RecordStep(Recorder* recorder, const Batch& b, int64_t step) {
  SB_RETURN_IF_ERROR(recorder->BeginStep(step));
  const int64_t n = static_cast<int64_t>(b.owners.size());
  ProbeSink* sink = recorder;
  for (int layer = 0; layer < 3; ++layer) {
    PROBE(sink, Site::kHiddenIn, layer, {b.hidden.data(), DType::kF32, n, 30, 33, nullptr, b.owners.data()});
    PROBE(sink, Site::kTopk, layer, {b.list.data(), DType::kI32, n, 4, 4, nullptr, b.owners.data()});
    PROBE(sink, Site::kIndexScores, layer, {b.hidden.data(), DType::kF32, n, 33, 33, b.lens.data(), b.owners.data()});
  }
  return recorder->EndStep();
}

Status RecordAll(const std::string& folder, const Batch& b, TraceWriterOptions options, RecorderFilter filter = {}) {
  options.quiet = true;
  SB_ASSIGN(auto recorder, Recorder::Create(folder, options, filter));
  for (int step = 0; step < 2; ++step) SB_RETURN_IF_ERROR(RecordStep(recorder.get(), b, step));
  return recorder->Finish();
}

TEST(Recorder, RoundTripAtEveryLevelAndLayout) {
  const Batch b(false);
  ThreadPool pool(2);
  for (const TraceLevel level : {TraceLevel::kDigest, TraceLevel::kStats, TraceLevel::kFull})
    for (const TraceLayout layout : {TraceLayout::kShards, TraceLayout::kPerTensor}) {
      TraceWriterOptions options;
      options.level = level, options.layout = layout, options.pool = &pool;
      options.about = {{"model", "tiny \"quoted\""}};
      const std::string folder = Folder(TraceLevelName(level) + std::string(TraceLayoutName(layout)));
      ASSERT_TRUE(RecordAll(folder, b, options).ok());
      EXPECT_FALSE(RecordAll(folder, b, options).ok()) << "a recording must not be overwritten";
      auto reader = TraceReader::Open(folder);
      ASSERT_TRUE(reader.ok()) << reader.status().text();
      EXPECT_TRUE(reader->manifest().complete);
      EXPECT_EQ(reader->manifest().about.at("model"), "tiny \"quoted\"");
      ASSERT_EQ(reader->size(), 18u);
      auto r = reader->Record(3);
      ASSERT_TRUE(r.ok()) << r.status().text();
      EXPECT_EQ(r->key, (TraceKey{0, 1, "hidden_in", 0, 0}));
      EXPECT_EQ(r->shape, (Shape{6, 30}));
      EXPECT_EQ(r->owners, (std::vector<OwnerRun>{{7, 10, 5}, {8, 3, 1}}));
      EXPECT_EQ(r->OwnerOf(4).position, 14);
      EXPECT_EQ(r->OwnerOf(5).request, 8);
      Digest128 d;
      ASSERT_TRUE(reader->RowDigest(*r, 2, &d));
      EXPECT_EQ(d, HashBytes(b.hidden.data() + 66, 30 * 4));
      EXPECT_FALSE(reader->RowDigest(*r, 6, &d));
      EXPECT_FALSE(reader->RowSet(*r, 0, &d));
      EXPECT_EQ(r->stats.has_value(), level != TraceLevel::kDigest);
      if (r->stats) {
        EXPECT_EQ(r->stats->min, 308 + 0.0);
        EXPECT_EQ(r->stats->max, 1436 + 0.0);
      }
      auto ragged = reader->Record(2);
      ASSERT_TRUE(ragged.ok());
      EXPECT_EQ(ragged->lens, b.lens);
      auto data = reader->Data(*r);
      ASSERT_EQ(data.ok(), level == TraceLevel::kFull) << (data.ok() ? "" : data.status().text());
      if (!data.ok()) continue;
      EXPECT_EQ(DigestTensor(data->tensor, false).ordered, r->ordered);
      auto rows = reader->Data(*ragged);
      ASSERT_TRUE(rows.ok());
      const float* kept = rows->tensor.As<float>();
      EXPECT_EQ(std::memcmp(kept + 33, b.hidden.data() + 33, sizeof(float) * static_cast<size_t>(b.lens[1])), 0);
      EXPECT_EQ(kept[33 + b.lens[1]], 0.0f);
      if (layout == TraceLayout::kPerTensor) {
        EXPECT_TRUE(FileExists(folder + "/step_000001/debug_topk_file_2_tp0.safetensors"));
      }
    }
}

TEST(Recorder, SameBytesFromRunToRun) {
  const Batch b(false);
  TraceWriterOptions options;
  options.level = TraceLevel::kFull;
  const std::string x = Folder("x"), y = Folder("y");
  ASSERT_TRUE(RecordAll(x, b, options).ok());
  ASSERT_TRUE(RecordAll(y, b, options).ok());
  const auto names = ListFolder(x);
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 5u);
  for (const std::string& name : *names) EXPECT_EQ(*ReadFile(x + "/" + name), *ReadFile(y + "/" + name)) << name;
}

TEST(Recorder, OrderOfRowsAndListsShowsInTheRightDigests) {
  const std::string x = Folder("x"), y = Folder("y");
  ASSERT_TRUE(RecordAll(x, Batch(false), {}).ok());
  ASSERT_TRUE(RecordAll(y, Batch(true), {}).ok());
  auto a = TraceReader::Open(x), b = TraceReader::Open(y);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->KeyText(0), b->KeyText(0));
  EXPECT_NE(a->KeyText(0), a->KeyText(1));
  const auto hidden_a = *a->Record(0), hidden_b = *b->Record(0);
  EXPECT_NE(hidden_a.ordered, hidden_b.ordered);
  EXPECT_EQ(hidden_a.order_free, hidden_b.order_free);
  const auto list_a = *a->Record(1), list_b = *b->Record(1);
  Digest128 da, db;
  ASSERT_TRUE(a->RowDigest(list_a, 0, &da) && b->RowDigest(list_b, 1, &db));
  EXPECT_NE(da, db);
  ASSERT_TRUE(a->RowSet(list_a, 0, &da) && b->RowSet(list_b, 1, &db));
  EXPECT_EQ(da, db);
}

TEST(Recorder, FiltersAndCaps) {
  const Batch b(false);
  RecorderFilter filter;
  filter.sites = *ParseSites("topk", "--sites");
  filter.layers = *ParseRanges("1-2", "--layers");
  filter.steps = *ParseRanges("1", "--steps");
  filter.positions = *ParseRanges("3,12-13", "--positions");
  ASSERT_TRUE(RecordAll(Folder("f"), b, {}, filter).ok());
  auto reader = TraceReader::Open(Folder("f"));
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(reader->size(), 2u);
  const auto r = *reader->Record(0);
  EXPECT_EQ(r.key, (TraceKey{1, 1, "topk", 0, 0}));
  EXPECT_EQ(r.owners, (std::vector<OwnerRun>{{7, 12, 2}, {8, 3, 1}}));
  Digest128 d;
  ASSERT_TRUE(reader->RowDigest(r, 1, &d));
  EXPECT_EQ(d, HashBytes(b.list.data() + 12, 16));
  EXPECT_EQ(reader->manifest().filter.at("positions"), "3,12-13");

  TraceWriterOptions few;
  few.max_records = 4;
  ASSERT_TRUE(RecordAll(Folder("c"), b, few).ok());
  auto capped = TraceReader::Open(Folder("c"));
  ASSERT_TRUE(capped.ok());
  EXPECT_EQ(capped->size(), 4u);
  ASSERT_EQ(capped->manifest().notices.size(), 1u);
  EXPECT_NE(capped->manifest().notices[0].find("cap of 4 records"), std::string::npos);

  TraceWriterOptions small;
  small.level = TraceLevel::kFull;
  small.max_bytes = 1500;
  ASSERT_TRUE(RecordAll(Folder("d"), b, small).ok());
  auto thin = TraceReader::Open(Folder("d"));
  ASSERT_TRUE(thin.ok());
  EXPECT_EQ(thin->size(), 18u);
  EXPECT_TRUE(thin->Data(*thin->Record(0)).ok());
  EXPECT_FALSE(thin->Data(*thin->Record(17)).ok());
  EXPECT_EQ(thin->manifest().notices.size(), 1u);

  EXPECT_FALSE(ParseSites("nonsense", "--sites").ok());
  EXPECT_EQ(ParseSites("attn1", "--sites")->size(), 4u);
  EXPECT_FALSE(ParseRanges("5-3", "--layers").ok());
  EXPECT_EQ(ParseRanges("-1", "--layers")->front().first, -1);
}

TEST(Recorder, ACrashKeepsWhatCameBefore) {
  const Batch b(false);
  const std::string folder = Folder("");
  TraceWriterOptions options;
  auto recorder = Recorder::Create(folder, options);
  ASSERT_TRUE(recorder.ok());
  ASSERT_TRUE((*recorder)->BeginStep(0).ok());
  for (int layer = 0; layer < 2; ++layer)
    (*recorder)->OnRows(Site::kTopk, layer, {b.list.data(), DType::kI32, 6, 4, 4, nullptr, b.owners.data()});
  auto reader = TraceReader::Open(folder);  // as another process would find it after a crash
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->size(), 1u);
  EXPECT_FALSE(reader->manifest().complete);
  Digest128 d;
  EXPECT_TRUE(reader->RowDigest(*reader->Record(0), 5, &d));
  ASSERT_TRUE((*recorder)->Finish().ok());
  EXPECT_EQ(TraceReader::Open(folder)->size(), 2u);
}

TEST(TraceReader, BadRecordingsAreRefusedBySentence) {
  const Batch b(false);
  EXPECT_FALSE(TraceReader::Open(Folder("none")).ok());
  const std::string folder = Folder("ok");
  TraceWriterOptions full;
  full.level = TraceLevel::kFull;
  ASSERT_TRUE(RecordAll(folder, b, full).ok());
  const std::string lines = *ReadFile(folder + "/sites.jsonl");
  // Every cut of the line file opens or is refused; records that are there parse.
  for (size_t n = 0; n < lines.size(); n += 37) {
    ASSERT_TRUE(WriteFile(folder + "/sites.jsonl", lines.substr(0, n)).ok());
    auto reader = TraceReader::Open(folder);
    ASSERT_TRUE(reader.ok());
    for (size_t i = 0; i < reader->size(); ++i) EXPECT_TRUE(reader->Record(i).ok());
  }
  const std::string first =
      lines.substr(lines.find("{\"type\":\"site\""), lines.find('\n', 50) - lines.find("{\"type\":\"site\""));
  const struct {
    const char* from;
    const char* to;
  } kBad[] = {{"\"F32\"", "\"F31\""},
              {"[6,30]", "[6,4611686018427387904]"},
              {"[6,30]", "[-1]"},
              {"[6,30]", "6"},
              {"[7,10,5]", "[7,10,50]"},
              {"[7,10,5]", "[7]"},
              {"\"rows\":6", "\"rows\":-6"},
              {"\"rows\":6", "\"rows\":9223372036854775807"},
              {"\"ordered\":\"", "\"ordered\":\"zz"},
              {"\"step\":0", "\"step\":[[[[[[[[[[]]]]]]]]]]"},
              {"\"step\":0", "\"step\":"}};
  for (const auto& bad : kBad) {
    std::string line = first;
    const size_t at = line.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    line.replace(at, std::strlen(bad.from), bad.to);
    ASSERT_TRUE(WriteFile(folder + "/sites.jsonl", line + "\n").ok());
    auto reader = TraceReader::Open(folder);
    ASSERT_TRUE(reader.ok() && reader->size() == 1);
    EXPECT_FALSE(reader->Record(0).ok()) << bad.to;
  }
  std::string line = first;
  line.replace(line.find("step_000000_rank0"), 17, "../ok/step_000000_rank0");
  ASSERT_TRUE(WriteFile(folder + "/sites.jsonl", line + "\n").ok());
  auto reader = TraceReader::Open(folder);
  EXPECT_NE(reader->Data(*reader->Record(0)).status().text().find("leaves the recording"), std::string::npos);
  for (const char* manifest : {"", "[]", "{}", "{\"schema\":3}", "{\"schema\":\"samebits-trace-1\",\"level\":7}"}) {
    ASSERT_TRUE(WriteFile(folder + "/manifest.json", manifest).ok());
    EXPECT_FALSE(TraceReader::Open(folder).ok());
  }
}

TEST(TraceReader, RanksAreReadTogetherAndMissingOnesNamed) {
  const Batch b(false);
  TraceWriterOptions options;
  options.ranks = 3;
  for (int rank = 0; rank < 2; ++rank) {
    options.rank = rank;
    ASSERT_TRUE(RecordAll(Folder(""), b, options).ok());
  }
  auto reader = TraceReader::Open(Folder(""));
  ASSERT_TRUE(reader.ok()) << reader.status().text();
  EXPECT_EQ(reader->size(), 36u);
  EXPECT_EQ(reader->Record(20)->key.rank, 1);
  Digest128 d;
  EXPECT_TRUE(reader->RowDigest(*reader->Record(20), 0, &d));
  EXPECT_FALSE(reader->manifest().complete);
  EXPECT_NE(reader->manifest().notices[0].find("rank 2 of 3"), std::string::npos);
}

}  // namespace
}  // namespace samebits
