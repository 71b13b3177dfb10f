"""Word lists for the sentence templates of `recipes.lark.templates`. Our own, Apache-2.0."""

from __future__ import annotations


def _split(text: str) -> tuple[str, ...]:
    """Split a block of comma-separated entries."""
    return tuple(entry.strip() for entry in text.replace("\n", " ").split(",") if entry.strip())


FIRST_NAMES = _split("""
Alice, Aaron, Amara, Anita, Arthur, Ben, Bianca, Brian, Carla, Carlos, Cathy, Chen, Claire,
Daniel, Daria, David, Deborah, Diego, Dora, Edward, Eleanor, Elena, Emily, Ethan, Eva, Fatima,
Felix, Fiona, Frank, Gabriel, George, Grace, Greta, Hannah, Harold, Hassan, Helen, Henry, Ian,
Ibrahim, Ingrid, Iris, Isaac, Ivan, Jack, James, Jasmine, Joan, Joel, John, Julia, Karen, Kofi,
Laura, Leo, Liam, Linda, Lucas, Lucy, Magnus, Maria, Martin, Mary, Maya, Megan, Michael, Mina,
Nadia, Nathan, Nina, Noah, Nora, Oliver, Olivia, Omar, Oscar, Pablo, Patrick, Paul, Peter, Philip,
Priya, Quentin, Rachel, Ravi, Rebecca, Richard, Robert, Rosa, Ruth, Samuel, Sandra, Sara, Simon,
Sofia, Stella, Stephen, Susan, Tara, Thomas, Tobias, Ursula, Valerie, Victor, Vincent, Wanda,
Walter, William, Xavier, Yasmin, Yuki, Yvonne, Zachary, Zoe
""")

LAST_NAMES = _split("""
Abbott, Adams, Ahmed, Allen, Anderson, Bailey, Baker, Barnes, Bennett, Brooks, Brown, Campbell,
Carter, Castillo, Chang, Clark, Cohen, Collins, Cooper, Cruz, Davies, Diaz, Dubois, Edwards,
Evans, Fischer, Fletcher, Flores, Foster, Garcia, Gibson, Gonzalez, Graham, Gray, Green, Gupta,
Hall, Hamilton, Harris, Hayes, Hernandez, Hoffman, Hughes, Hunter, Ivanov, Jackson, Jansen,
Jenkins, Johnson, Jones, Kaminski, Kelly, Khan, Kim, Kowalski, Larsen, Lee, Lewis, Lopez,
Marshall, Martinez, Mason, Meyer, Miller, Mitchell, Moore, Morgan, Morris, Murphy, Murray, Nelson,
Nguyen, Novak, Olsen, Ortiz, Parker, Patel, Perez, Peterson, Phillips, Price, Quinn, Ramirez,
Reed, Reyes, Reynolds, Rivera, Roberts, Robinson, Rogers, Rossi, Russell, Sanders, Santos,
Schmidt, Scott, Shaw, Silva, Simpson, Singh, Smith, Stewart, Sullivan, Suzuki, Taylor, Thompson,
Torres, Tucker, Turner, Walker, Wallace, Ward, Watson, Webb, West, White, Williams, Wilson, Wood,
Wright, Yamamoto, Young, Zhang, Zimmerman
""")

TITLES = _split(
    "Mr., Mrs., Ms., Dr., Professor, Captain, Senator, Sergeant, Judge, President, Sir, Mayor, "
    "Colonel"
)

PLACES = _split("""
Amsterdam, Atlanta, Athens, Auckland, Austin, Bangkok, Barcelona, Beijing, Belfast, Berlin,
Bogota, Boston, Brazil, Brussels, Budapest, Buenos Aires, Cairo, California, Canada, Cape Town,
Chicago, Chile, Copenhagen, Dakar, Delhi, Denver, Detroit, Dublin, Edinburgh, Egypt, Finland,
Florence, France, Geneva, Germany, Ghana, Greece, Hamburg, Havana, Helsinki, Hong Kong, Houston,
Iceland, India, Indonesia, Ireland, Istanbul, Italy, Jakarta, Japan, Johannesburg, Kenya, Kyoto,
Lagos, Las Vegas, Lima, Lisbon, Liverpool, London, Los Angeles, Madrid, Manchester, Manila,
Melbourne, Mexico City, Miami, Milan, Minnesota, Montreal, Morocco, Moscow, Mumbai, Munich,
Nairobi, Naples, Nepal, New Orleans, New York, New Zealand, Nigeria, Norway, Oregon, Oslo, Ottawa,
Paris, Peru, Philadelphia, Phoenix, Poland, Portland, Portugal, Prague, Quebec, Rome, San Diego,
San Francisco, Santiago, Sao Paulo, Scotland, Seattle, Seoul, Shanghai, Singapore, South Africa,
Spain, Stockholm, Sweden, Switzerland, Sydney, Taiwan, Texas, Thailand, Tokyo, Toronto, Turkey,
Vancouver, Venice, Vienna, Vietnam, Virginia, Wales, Warsaw, Washington, Wisconsin, Zurich
""")

PEOPLE = _split("""
the actor, the architect, an analyst, the baker, the bus driver, the carpenter, the chairman,
the chef, the committee, the company, the conductor, the council, the county, the court,
the critics, the customer, a doctor, the driver, the engineers, the farmer, the firefighters,
the government, the guide, the historian, the inspector, the judge, the librarian, the lawyer,
the manager, the mechanic, the minister, a neighbor, the nurse, the officials, the owner,
the painter, the passengers, the pilot, the police, the professor, the programmer, researchers,
the sailor, scientists, the secretary, the shopkeeper, a spokeswoman, the students, the surgeon,
the teacher, the team, the tourists, the union, volunteers, the waiter, a witness, the workers,
the writer, my brother, my grandmother, our landlord, their daughter, his uncle, her cousin,
the twins, the children, the orchestra, the crew, the jury, the board
""")

THINGS = _split("""
airport, apartment, archive, bakery, bank, barn, battery, beach, bicycle, book, bottle, bridge,
bucket, building, bus, cabinet, cable, camera, candle, car, castle, cathedral, chair, church,
clock, coat, coffee machine, computer, contract, cottage, curtain, dam, desk, diamond, dictionary,
door, drawer, dress, drum, elevator, engine, envelope, factory, farm, fence, ferry, festival,
fireplace, flag, flashlight, forest, fountain, furnace, garage, garden, gate, glacier, guitar,
hammer, harbor, helmet, highway, hospital, hotel, island, jacket, journal, jungle, kettle, key,
kitchen, ladder, lake, lamp, laptop, letter, library, lighthouse, luggage, machine, magazine, map,
market, medicine, microphone, mirror, mountain, museum, necklace, newspaper, notebook, office,
orchard, oven, package, painting, park, passport, pencil, phone, photograph, piano, picture,
pipeline, planet, pocket, pool, printer, prison, puzzle, quilt, radio, railway, recipe,
refrigerator, report, restaurant, ribbon, river, road, rocket, roof, rope, sandwich, satellite,
school, screen, server, ship, shirt, shoe, shoulder, signal, statue, stove, street, suitcase,
table, teapot, telescope, television, temple, tent, theater, ticket, toolbox, tower, tractor,
train, treasure, tunnel, umbrella, university, valley, van, vehicle, violin, volcano, wallet,
warehouse, watch, waterfall, wheel, window, workshop
""")

ADJECTIVES = _split("""
ancient, angry, awful, beautiful, bitter, black, blue, bright, broken, careful, cautious, cheap,
clean, clever, cold, comfortable, complicated, cruel, curious, damp, dangerous, dark, deep,
delicate, delicious, difficult, dry, dusty, eager, easy, elegant, empty, enormous, expensive,
fair, familiar, famous, fast, foreign, fragile, fresh, friendly, frozen, generous, gentle, golden,
graceful, great, green, gray, happy, heavy, hidden, honest, huge, humble, hungry, important,
international, jealous, joyful, large, lazy, little, lonely, long, lovely, loud, modern,
mysterious, narrow, nervous, new, noisy, odd, old, orange, ordinary, peaceful, perfect, pleasant,
polite, popular, private, proud, public, purple, quick, quiet, rare, red, remote, rich, rough,
rude, sad, sharp, shiny, short, silent, silver, simple, slow, small, smooth, soft, sour, special,
square, steep, strange, strong, sudden, sweet, tall, temporary, thick, thin, tiny, tired, tough,
ugly, unusual, useful, valuable, violent, warm, weak, wealthy, wet, white, wide, wild, wise,
wonderful, wooden, yellow, young
""")

PAST_VERBS = _split("""
admired, announced, approved, arranged, avoided, borrowed, bought, broke, brought, built, carried,
caught, cleaned, closed, copied, covered, crossed, damaged, delivered, described, designed,
destroyed, discovered, drew, emptied, entered, examined, explored, filmed, finished, fixed,
followed, forgot, found, hid, ignored, improved, inspected, investigated, joined, kept, left,
lifted, lost, measured, missed, moved, noticed, opened, ordered, painted, photographed, praised,
preferred, prepared, protected, purchased, pushed, reached, recognized, rejected, remembered,
removed, rented, repaired, replaced, requested, rescued, returned, reviewed, saved, searched,
showed, sketched, sold, stole, studied, supported, surrounded, tested, touched, used, visited,
warned about, wrote about, watched
""")

BASE_VERBS = _split("""
accept, admire, answer, arrange, avoid, borrow, break, bring, build, buy, carry, change, check,
choose, clean, close, copy, cross, deliver, describe, design, discuss, draw, examine, explain,
explore, find, finish, fix, follow, forget, ignore, improve, inspect, join, keep, lift, like,
lose, measure, miss, move, need, notice, open, order, paint, prefer, prepare, protect, push,
reach, recommend, remember, remove, rent, repair, replace, return, save, see, sell, share, show,
study, support, test, touch, trust, understand, use, visit, want, watch
""")

ADVERBS = _split("""
quickly, slowly, carefully, quietly, suddenly, finally, recently, probably, certainly, usually,
often, rarely, easily, gently, honestly, immediately, nearly, politely, sadly, secretly,
surprisingly, eventually, apparently, reportedly
""")

TIMES = _split("""
yesterday, last night, this morning, last week, on Monday, on Tuesday, on Wednesday, on Thursday,
on Friday, on Saturday, on Sunday, two days ago, a month ago, many years ago, at midnight,
before dawn, after lunch, in the evening, last summer, during the storm, in early spring,
at the weekend, just in time, after the meeting, before the game, over the holidays
""")

WHERE = _split("""
near the river, behind the house, at the station, in the city, on the hill, by the sea,
under the bridge, at home, at work, in the north, along the coast, in the middle of the square,
next to the bank, outside the gate, across the street, inside the old church, on the third floor,
at the edge of the forest, in a small village, around the corner
""")

FOODS = _split("""
apples, bananas, bread, butter, carrots, cheese, cherries, chicken, chocolate, cinnamon, coffee,
cucumbers, eggs, fish, flour, garlic, ginger, grapes, honey, lemons, lettuce, mushrooms, mustard,
noodles, olives, onions, oranges, pasta, peaches, peanuts, pears, pepper, potatoes, pumpkins,
raspberries, rice, salmon, salt, sausages, shrimp, soup, spinach, strawberries, sugar, tea,
tomatoes, vanilla, vinegar, walnuts, yogurt
""")

ANIMALS = _split("""
ants, bears, bees, butterflies, camels, cats, crows, deer, dogs, dolphins, donkeys, eagles,
elephants, foxes, frogs, geese, giraffes, goats, hawks, horses, kangaroos, lions, lizards,
monkeys, mice, octopuses, owls, oxen, parrots, penguins, pigs, rabbits, sharks, sheep, snakes,
spiders, squirrels, swans, tigers, turtles, whales, wolves, zebras
""")

MONTHS = _split("""
January, February, March, April, May, June, July, August, September, October, November, December
""")

WEEKDAYS = _split("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")

ACRONYMS = _split("""
NASA, FBI, CIA, USA, UK, EU, UN, BBC, CNN, IBM, MIT, NATO, UNESCO, DNA, RNA, GPS, CPU, GPU, RAM,
USB, HTTP, HTML, CSS, API, SQL, PDF, JPEG, DVD, CEO, CFO, PhD, MBA, NBA, NFL, FIFA, ATM, AIDS,
HIV, IQ, TV, PC, AC, DC, VIP, DIY, FAQ, RSVP, ASAP, ETA, OPEC, GDP, IRS, NHS, MRI, UFO, SUV, XML,
JSON, URL, VPN, LED, OLED, AI, NGO, WHO, IMF, RAF, USSR, UCLA, LAX, JFK, AM, FM
""")

UNITS = _split("""
kilometers, miles, meters, feet, inches, centimeters, kilograms, pounds, ounces, grams, tons,
liters, gallons, degrees, hours, minutes, seconds, days, weeks, months, years, percent, dollars,
euros, pages, people, votes, points, tickets, seats
""")

INTERJECTIONS = _split("""
Wow, Oh no, Hey, Well, Oh, Ah, Hmm, Look, Listen, Great, Come on, Wait, Please, Thank you,
Congratulations, Goodness, Good heavens, Hurry up, Of course, Sure, Okay, Right, Honestly, Sorry,
Excuse me, Good morning, Good evening, Hello, Hi
""")

SHORT_ANSWERS = _split("""
Yes., No., Maybe., Sure., Okay., OK., Yes!, No!, Never., Always., Sometimes., Perhaps.,
Absolutely., Exactly., Correct., Wrong., True., False., Right., Left., Up., Down., Here., There.,
Now., Later., Soon., Today., Tomorrow., Tonight., Yesterday., Monday., Friday., Red., Blue.,
Green., Thanks., Thank you., Please., Sorry., Hello., Hello!, Hi., Hi!, Hey!, Goodbye., Bye.,
Good morning., Good night., Why?, When?, Where?, Who?, What?, How?, Really?, Which one?,
How much?, How many?, Stop!, Go!, Wait., Wait!, Help!, Look!, Listen., Done., Ready., Ready?,
Finished., Almost., Not yet., Not really., Of course., Of course not., I see., I know., I agree.,
I think so., I don't know., I don't think so., No way!, No problem., No thanks., Yes, please.,
You're welcome., Never mind., That's right., That's all., Me too., Why not?, So what?, Of course!,
Great!, Great., Good., Bad., Nice., Fine., Wonderful., Interesting., Impossible., Unbelievable!,
Paris., London., Water., Coffee., Nothing., Something., Everything., Everyone., Nobody.,
Somebody., Once., Twice., Both., Neither., None., Half., First., Second., Third., Last., Next.,
Enough., Uh-huh., Hmm., Oh., Ah., Ouch!, Oops., Well..., So..., And then?, Certainly.,
Definitely., Possibly., Probably., Probably not., Indeed., Likewise., Agreed., Understood.,
Got it., Roger., Copy that.
""")
