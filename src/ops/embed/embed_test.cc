#include "ops/embed/embed.h"

#include "ops/op_testing.h"

namespace samebits {
namespace {

TEST(Embed, CopiesOrWidensRows) {
  RandomInputs random(3);
  const std::vector<BF16> table = random.NormalBF16(7 * 33);
  const int32_t ids[] = {6, 0, 3, 3};
  ForEachCpu([&](const CpuContext& context) {
    std::vector<BF16> out = Poisoned<BF16>(4 * 33), expected = Poisoned<BF16>(4 * 33);
    EmbedArgs args{ids, View<const BF16>(table.data(), 7, 33), View<BF16>(out.data(), 4, 33)};
    ASSERT_TRUE(Embed(context, args).ok());
    args.out = View<BF16>(expected.data(), 4, 33);
    EmbedRef(args);
    EXPECT_TRUE(SameBytes(out, expected));
    std::vector<float> wide = Poisoned<float>(4 * 33);
    args.out = View<float>(wide.data(), 4, 33);
    ASSERT_TRUE(Embed(context, args).ok());
    for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(Bits(wide[i]), Bits(ToF32(out[i])));
  });
}

TEST(Embed, AnIdOutsideTheVocabularyIsNamed) {
  std::vector<BF16> table(10), out(5);
  for (const int32_t bad : {-1, 2}) {
    const EmbedArgs args{&bad, View<const BF16>(table.data(), 2, 5), View<BF16>(out.data(), 1, 5)};
    EXPECT_NE(CheckEmbed(args).text().find("outside the vocabulary of 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace samebits
