"""Full duplex after OpenAI's Live API: sound both ways, without turns that clients have to keep."""
